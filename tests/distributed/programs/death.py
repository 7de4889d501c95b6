"""A rank that is killed before a collective or in its middle, raises, or comes late: VERB HOW TIMEOUT FOLDER."""

import os
import signal
import sys
import time
from pathlib import Path

import anabranch as ab

verb, how, timeout, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])
comm = ab.distributed.init(timeout=timeout)
n, dead = comm.size, int(os.environ.get("ANABRANCH_TEST_DEAD", comm.size - 1))
count = 3_000_000 if how == "middle" else 100_000  # of which MPI moves a part after the other
x, whole = ab.ones(count), ab.ones(count * n)
calls = {
    "all_reduce": lambda: comm.all_reduce(x),
    "reduce": lambda: comm.reduce(x, root=dead),
    "broadcast": lambda: comm.broadcast(x, dead),
    "all_gather": lambda: comm.all_gather(whole, x),
    "reduce_scatter": lambda: comm.reduce_scatter(x, whole),
    "all_to_all": lambda: comm.all_to_all(ab.ones(count * n), whole),
    "gather": lambda: comm.gather(whole, x, dead),
    "scatter": lambda: comm.scatter(x, whole, dead),
    "send": lambda: comm.send(x, dead),
    "recv": lambda: comm.recv(x, dead),
    "barrier": lambda: comm.barrier(),
}
ab.synchronize()
if how == "middle":
    calls[verb]()
    (folder / f"in {comm.rank}").touch()
    while comm.rank == dead and len(list(folder.glob("in *"))) < n:
        pass
    if comm.rank == dead:
        os.kill(os.getpid(), signal.SIGKILL)
if comm.rank == dead:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise ValueError("a bad batch\nof the second line")
    if how == "stream":
        ab.testing.fail(ab.current_stream(), "a kernel that fails")
        calls[verb]()
    while how == "late" and len(list(folder.iterdir())) < n - 1:
        time.sleep(0.01)
begin = time.monotonic()
try:
    calls[verb]()
    comm.barrier()  # a rank may be done with its part of the first
    ab.synchronize()
except (ab.CollectiveError, ab.KernelError) as error:
    took = time.monotonic() - begin
    print(
        f"rank {comm.rank}: {type(error).__name__} {getattr(error, 'ranks', None)} after {took:.0f} s: {error}",
        flush=True,
    )
else:
    print(f"rank {comm.rank}: no error", flush=True)
(folder / str(comm.rank)).touch()
try:
    comm.all_reduce(ab.ones(3, stream=ab.Stream()))
except ab.CollectiveError:
    print(f"rank {comm.rank}: broken", flush=True)
