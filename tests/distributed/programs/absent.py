"""A rank does not come to calls that block the host; then it does. FOLDER."""

import sys
import time
from pathlib import Path

import anabranch as ab

folder = Path(sys.argv[1])
comm = ab.distributed.init(timeout=1)
with ab.trace() as trace:
    ab.zeros(4)


def split():
    comm.split(0)


def save():
    trace.save(folder / "trace.json", comm=comm)


def init():
    ab.distributed.init(timeout=1)


if comm.rank == 0:
    for call in (split, save, init):
        begin = time.monotonic()
        try:
            call()
        except ab.Error as error:
            print(
                f"{call.__name__} after {time.monotonic() - begin:.0f} s: {type(error).__name__}: {error}", flush=True
            )
    (folder / "done").touch()
else:
    while not (folder / "done").exists():
        time.sleep(0.01)
parts = comm.split(0), ab.distributed.init(timeout=20)
try:
    split() if comm.rank == 0 else save()
except ab.CollectiveError as error:
    print(f"rank {comm.rank}: {error}", flush=True)
for part in parts:
    x = ab.ones(4)
    part.all_reduce(x)
    assert x.numpy().sum() == 4 * comm.size
print("fine", flush=True)
