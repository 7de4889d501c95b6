"""Groups of messages that are entered again, in place, of one array, and of a closed communicator. 2 ranks."""

import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=30)
other = 1 - comm.rank

# In place, in either order, and larger than what MPI sends without asking.
for order in ("send first", "recv first"):
    x = ab.full(1_000_000, float(comm.rank), dtype="float32")
    with comm.group():
        if order == "send first":
            comm.send(x, other)
        comm.recv(x, other)
        if order == "recv first":
            comm.send(x, other)
    assert (x.numpy() == other).all(), order

# A group that is entered again starts empty, also after an error.
exchange = comm.group()
y, z = ab.zeros(4), ab.zeros(4)
with exchange:
    comm.send(ab.full(4, 1.0, dtype="float32"), other)
    comm.recv(y, other)
try:
    with exchange:
        comm.send(ab.full(4, 5.0, dtype="float32"), other)
        raise KeyError
except KeyError:
    pass
with exchange:
    comm.send(ab.full(4, 2.0, dtype="float32"), other)
    comm.recv(z, other)
assert (y.tolist(), z.tolist()) == ([1.0] * 4, [2.0] * 4)
ab.fill(y, 7.0)
with exchange:
    pass
assert y.tolist() == [7.0] * 4

# Nobody can say which of two messages one array would have; columns of an array are not the same memory.
plane = ab.zeros((4, 4))
with comm.group():
    comm.send(ab.full(4, 3.0, dtype="float32"), other)
    comm.send(ab.full(4, 4.0, dtype="float32"), other)
    comm.recv(plane[:, 0], other)
    comm.recv(plane[:, 3], other)
assert plane.numpy()[1].tolist() == [3.0, 0.0, 0.0, 4.0]
with comm.group():
    comm.send(plane[0], other)
    comm.recv(plane[1], other)
    with pytest.raises(ValueError, match="the same memory"):
        comm.recv(plane, other)

stream = ab.Stream()
closed = comm.split(0)
with closed, ab.capture(stream) as graph:
    comm.all_reduce(y, stream=stream)
    closed.all_reduce(y, stream=stream)
with pytest.raises(ab.ClosedError, match="communicator that is closed"):
    graph.launch(stream)
comm.all_reduce(y)  # the place that the graph had taken is free again
assert y.tolist() == [14.0] * 4
print("fine")
