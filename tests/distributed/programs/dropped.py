"""More communicators at a time than MPICH has."""

import pytest

import anabranch as ab

comm = ab.distributed.init()
parts = []
with pytest.raises(ab.Error, match=r"MPI has no more communicators: close\(\) those that are done"):
    parts.extend(comm.split(0) for _ in range(10_000))
with pytest.raises(ab.Error, match="no more communicators"):
    ab.distributed.init()
for part in parts:
    part.close()
x = ab.ones(4)
with comm.split(0) as part:
    part.all_reduce(x)
print("fine")
