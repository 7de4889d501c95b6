"""Ranks that nobody started: RANK SIZE ADDRESS TIMEOUT, or what torchrun sets."""

import sys

import anabranch as ab

if len(sys.argv) > 1:
    rank, size, address, timeout = sys.argv[1:]
    comm = ab.distributed.init(rank=int(rank), size=int(size), address=address, timeout=float(timeout))
else:
    assert ab.distributed.is_launched()
    comm = ab.distributed.init(timeout=30)
x = ab.full(1000, comm.rank + 1)
comm.all_reduce(x)
print(comm.rank, comm.size, comm.local_rank, int(x.numpy()[0]))
