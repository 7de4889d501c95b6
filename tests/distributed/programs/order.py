"""What collectives are to hazards, traces, gates, events and `await`."""

import asyncio
import sys

import numpy as np
import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=60)
n = comm.size
a, b = ab.Stream(name="a"), ab.Stream(name="b")


def line():
    return sys._getframe(1).f_lineno


# It returns at once, and its stream alone waits for a rank that comes late.
x = ab.ones(1000)
ab.synchronize()
gate = ab.testing.Gate(a) if comm.rank == 0 else None
comm.all_reduce(x, stream=a)
assert n == 1 or not a.query() or comm.rank != 0
assert b.query()
if gate is not None:
    assert not a.query()
    gate.open()
assert (x.numpy() == n).all()

# Streams are put in order: what is read after, and written before, whichever streams.
with ab.trace() as t, ab.testing.Gate(b):
    ab.fill(x, comm.rank + 1, stream=b)
    comm.all_reduce(x, stream=a), (called := line())
    ab.fill(x, 0, stream=b)
ab.synchronize()
added = [operation for operation in t.operations if operation.kind == "wait" and operation.added]
assert [wait.stream for wait in added] == [a, b], t.operations
(collective,) = (operation for operation in t.operations if operation.kind == "collective")
assert collective.name == "all_reduce #2"
assert collective.nbytes == 4000
assert collective.stream == a
assert (collective.file, collective.line) == (__file__, called)

# Under "check" a missing order is an error on every rank, with both lines, and nothing is enqueued.
with ab.hazards("check"):
    x = ab.ones(8, stream=b)
    with pytest.raises(ab.RaceError) as race:
        comm.all_reduce(x, stream=a)
    assert race.value.kind in ("RAW", "WAW")
    assert race.value.second.line == line() - 2
    a.wait_stream(b)
    comm.all_reduce(x, stream=a)
    a.synchronize()
    # An array that is only read may be read elsewhere at the same time.
    y, z = ab.ones(8, stream=a), ab.ones(8 * n, stream=a)
    b.wait_stream(a)
    comm.all_gather(z, y, stream=a)
    ab.copy(ab.empty(8, stream=b), y, stream=b)
    ab.synchronize()

# The calls of one communicator run in the order of the program on whichever streams, those of two do not wait.
second = comm.split(0)
x, y = ab.ones(4), ab.ones(4)
ab.synchronize()
gate = ab.testing.Gate(a)
comm.all_reduce(x, stream=a)
comm.all_reduce(y, stream=b)
z = ab.ones(4, stream=b)
free = ab.Stream()
z = ab.ones(4, stream=free)
second.all_reduce(z, stream=free)
assert (z.numpy() == n).all()
assert not b.query()
gate.open()
assert (x.numpy() == n).all()
assert (y.numpy() == n).all()


# Arrays may be dropped at once, and streams closed.
def drop():
    stream = ab.Stream()
    comm.all_reduce(ab.ones(100_000, stream=stream), stream=stream)
    stream.close()


for _ in range(20):
    drop()


async def main():
    x = ab.ones(4, stream=a)
    comm.all_reduce(x, stream=a)
    await a
    assert a.query()
    event = a.record_event()
    comm.barrier(stream=a)
    await event


asyncio.run(main())

# An operation behind a gate that nobody opens does not keep the process.
last = ab.testing.Gate(b)
comm.all_reduce(ab.ones(4, stream=b), stream=b)
np.testing.assert_array_equal(x.numpy(), n)
print("fine")
