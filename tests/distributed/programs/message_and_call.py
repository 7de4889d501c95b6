"""Under `check`, rank 0 calls a collective where rank 1 waits for a message of its. FOLDER."""

import sys
import time
from pathlib import Path

import anabranch as ab

told = Path(sys.argv[1]) / "told"
comm = ab.distributed.init(timeout=2)
stream = ab.Stream()
x = ab.ones(4)
ab.synchronize()
with ab.hazards("check"):
    if comm.rank == 0:
        try:
            comm.all_reduce(x, stream=stream)
        except ab.CollectiveError as error:
            print(f"CollectiveError {error.ranks}: {error}", flush=True)
        told.touch()
        comm.send(x, 1, stream=stream)
        stream.synchronize()
    else:
        with ab.testing.Gate(stream):  # so that it does not begin, whose time is limited as well
            comm.recv(x, 0, stream=stream)
            while not told.exists():
                time.sleep(0.01)
        stream.synchronize()
print("fine", flush=True)
