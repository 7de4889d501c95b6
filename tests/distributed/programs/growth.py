"""Many small collectives in flat memory: COUNT."""

import resource
import sys

import anabranch as ab

count = int(sys.argv[1])
comm = ab.distributed.init(timeout=60)
streams = [ab.Stream(), ab.Stream()]
x = ab.ones(4, stream=streams[0])


def some(number):
    for i in range(number):
        comm.all_reduce(x, "max", stream=streams[i % 2])
        if i % 100 == 99:
            ab.synchronize()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB


some(count // 4)
before = peak()
some(count)
assert peak() - before < 8192, (before, peak())
print("flat")
