"""Over NCCL, of which each rank has a stand-in on a simulated GPU, rank 1 does not come to a collective. FOLDER."""

import sys
import time
from pathlib import Path

import nccl_stand_in  # noqa: F401

import anabranch as ab

told = Path(sys.argv[1]) / "told"
comm = ab.distributed.init(timeout=1)
stream = ab.Stream(comm.device)
x = ab.ones(4, device=comm.device, stream=stream)
stream.synchronize()
if comm.rank == 0:
    with ab.testing.Gate(stream):  # which holds what a stand-in would not
        comm.all_reduce(x, stream=stream)
        while "broken" not in repr(comm):
            time.sleep(0.01)
    try:
        comm.all_reduce(x, stream=stream)
    except ab.CollectiveError as error:
        print(f"CollectiveError {error.ranks}: {error}", flush=True)
    told.touch()
while not told.exists():
    time.sleep(0.01)
