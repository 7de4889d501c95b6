"""A collective to which rank 1 comes last, saved as one timeline: FILE."""

import sys
import time

import anabranch as ab

comm = ab.distributed.init(timeout=60)
late, stream = 1, ab.Stream(name="s")
x, token = ab.ones(8), ab.ones(1)
comm.all_reduce(x, stream=stream)
ab.synchronize()
with ab.trace() as t:
    if comm.rank != late:
        comm.all_reduce(x, stream=stream)
        while comm.started < 2:  # its stream has not come to it
            time.sleep(0.001)
        comm.split(0)  # the host says that this rank has come, and waits for the others
    else:
        comm.split(0)
        comm.all_reduce(x, stream=stream)
    ab.synchronize()
t.save(sys.argv[1], comm=comm)
