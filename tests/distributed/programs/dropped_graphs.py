"""Graphs of collectives give back what they hold, in a program that has started no thread for host functions."""

import resource

import anabranch as ab

comm = ab.distributed.init(timeout=60)
stream = ab.Stream()


def some(number):
    for _ in range(number):
        x = ab.ones(500_000)
        with ab.capture(stream) as graph:
            comm.all_reduce(x)
        graph.launch(stream)
        stream.synchronize()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB


some(10)
before = peak()
some(40)
assert peak() - before < 20_000, (before, peak())
print("given back")
