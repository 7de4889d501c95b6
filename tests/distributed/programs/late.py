"""A rank is late once, under `check`: that call fails, and the next ones are compared as they are made. FOLDER."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

failed = Path(sys.argv[1]) / "failed"
comm = ab.distributed.init(timeout=3)
x = ab.ones(4)
ab.synchronize()
with ab.hazards("check"):
    if comm.rank == 0:
        with pytest.raises(ab.CollectiveError, match=r"all_reduce.* rank 1 has not come to it in 3 s"):
            comm.all_reduce(x)
        failed.touch()
    while not failed.exists():
        time.sleep(0.01)
    for _ in range(3):
        comm.all_reduce(x)
    assert np.array_equal(x.numpy(), np.full(4, comm.size**3))
print("fine")
