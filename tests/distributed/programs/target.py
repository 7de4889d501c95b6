"""A joint trace is saved into folders that only rank 0 has, or not even that one: FOLDER."""

import os
import sys
import time
from pathlib import Path

import pytest

import anabranch as ab

folder = Path(sys.argv[1])
comm = ab.distributed.init(timeout=60)
with ab.trace() as trace:
    ab.zeros(4)
own = folder / f"rank {comm.rank}"
own.mkdir()
os.chdir(own)
if comm.rank == 0:
    Path("traces").mkdir()
trace.save("traces/x.json", comm=comm)
assert Path("traces/x.json").exists() == (comm.rank == 0)
begin = time.monotonic()
with pytest.raises(FileNotFoundError, match="there is no folder 'missing'"):
    trace.save("missing/x.json" if comm.rank == 0 else "x.json", comm=comm)
with pytest.raises(ValueError, match=r"not as 'x\.png'"):
    trace.save("x.png", comm=comm)
assert time.monotonic() - begin < 30
trace.save("x.json", comm=comm)  # the ranks are still in step
print("fine", flush=True)
