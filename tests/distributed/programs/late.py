"""A rank is late once, under `check`: that call fails, and the next ones are compared as they are made."""

import time

import numpy as np
import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=1)
x = ab.ones(4)
ab.synchronize()
with ab.hazards("check"):
    if comm.rank == 0:
        with pytest.raises(ab.CollectiveError, match="have not all come to it in 1 s"):
            comm.all_reduce(x)
    else:
        time.sleep(1.5)
    for _ in range(3):
        comm.all_reduce(x)
    assert np.array_equal(x.numpy(), np.full(4, comm.size**3))
print("fine")
