"""More communicators, one after the other, than MPI has at a time: COUNT."""

import sys

import anabranch as ab

comm = ab.distributed.init()
for _ in range(int(sys.argv[1])):
    comm.split(0).close()
    ab.distributed.init().close()
print("fine")
