"""A forked child of a rank can make no calls, and its end changes nothing for the ranks."""

import os
import sys

import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=30)
x = ab.ones(4)
child = os.fork()
if child == 0:
    for call in (comm.barrier, comm.group, lambda: comm.split(0), lambda: comm.all_reduce(x), ab.distributed.init):
        with pytest.raises(ab.ForkError, match="forked"):
            call()
    comm.close()
    sys.exit(7)  # with the exit handlers
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
comm.split(0).all_reduce(x)
assert (x.numpy() == comm.size).all()
print("fine")
