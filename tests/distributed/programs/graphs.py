"""Collectives in graphs: each replay is a collective of its own, in the order of the program."""

import numpy as np
import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=60)
n = comm.size
s, other = ab.Stream(name="s"), ab.Stream(name="other")
x, total, everyone = ab.ones(8, stream=s), ab.zeros(8, stream=s), ab.zeros((n, 4), stream=s)
strided = ab.ones(8, stream=s)
ab.synchronize()

with ab.capture(s) as graph:
    comm.all_reduce(x, "sum", total)
    comm.all_gather(everyone, total[:4], stream=s)
    ab.copy(x, total)
    comm.all_reduce(strided[::2], "max")
assert [node.name for node in graph.nodes if node.kind == "host"] == ["all_reduce", "all_gather", "all_reduce"]
assert (x.numpy() == 1).all()

expected = np.ones(8)
for replay in range(5):
    graph.launch(s)
    if replay % 2:
        # Between two replays, on another stream, in the same order on all ranks.
        comm.all_reduce(x, "max", stream=other)
    expected *= n
assert (x.numpy() == expected).all()
assert (everyone.numpy() == expected[0]).all()

# A rank that comes late to a replay holds only that.
gate = ab.testing.Gate(s) if comm.rank == 0 else None
ab.fill(x, 1, stream=s)
for _ in range(3):
    graph.launch(s)
if gate is not None:
    gate.open()
assert (x.numpy() == n**3).all()

with ab.capture(s) as outer:
    graph.launch(s)
    graph.launch(s)
ab.fill(x, 1, stream=s)
outer.launch(s)
assert (x.numpy() == n**2).all()

flag = ab.ones(1, "int32", stream=s)
with pytest.raises(ab.CaptureError, match="cannot be part of a branch or loop"), ab.capture(s):
    ab.run_if(flag, lambda: comm.all_reduce(x))


@ab.graphed
def step(y):
    comm.all_reduce(y)


with s:
    y = ab.ones(4)
    with pytest.warns(RuntimeWarning, match="step is not captured.* cannot make collectives"):
        step(y)
assert (y.numpy() == n).all()
ab.synchronize()
comm.all_reduce(total, stream=s)
ab.synchronize()
print("fine")
