"""What is asked of NCCL, of which a stand-in notes the calls, on a simulated GPU."""

import os

import numpy as np
import pytest
from nccl_stand_in import library, managed

import anabranch as ab

DEVICE = os.environ["ANABRANCH_DEVICE"]
comm = ab.distributed.init()
assert (comm.backend, comm.device) == ("nccl", ab.Device(DEVICE))
assert managed == [("init", 1, 0, b"identifier")]
# As in nccl.h.
UINT8, FLOAT16, FLOAT32 = 1, 6, 7
SUM, MAX, MIN, AVG = 0, 2, 3, 4
s, other = ab.Stream(DEVICE), ab.Stream(DEVICE)
x, out = ab.empty(6, device=DEVICE, stream=s), ab.empty(6, device=DEVICE, stream=s)
halves = ab.empty((2, 3), "float16", device=DEVICE, stream=s)
mixed = ab.empty(3, "complex64", device=DEVICE, stream=s)
flags = ab.empty(3, "bool", device=DEVICE, stream=s)
f, g, handle = f"{x.ptr:x}", f"{out.ptr:x}", f"{s.handle:x}"


def calls():
    return library.nccl_calls().decode().splitlines()


def asked(*expected):
    assert (got := calls()) == list(expected), got


comm.all_reduce(x, stream=s)
asked(f"ncclAllReduce {f} {f} 6 {FLOAT32} {SUM} {handle}")
comm.all_reduce(x, "avg", out, stream=s)
asked(f"ncclAllReduce {f} {g} 6 {FLOAT32} {AVG} {handle}")
comm.reduce(x, "max", stream=s)
asked(f"ncclReduce {f} {f} 6 {FLOAT32} {MAX} 0 {handle}")
comm.all_reduce(halves, "min", stream=s)
asked(f"ncclAllReduce {halves.ptr:x} {halves.ptr:x} 6 {FLOAT16} {MIN} {handle}")
comm.all_reduce(mixed, stream=s)
asked(f"ncclAllReduce {mixed.ptr:x} {mixed.ptr:x} 6 {FLOAT32} {SUM} {handle}")
comm.all_reduce(flags, stream=s)
asked(f"ncclAllReduce {flags.ptr:x} {flags.ptr:x} 3 {UINT8} {MAX} {handle}")
comm.broadcast(x, stream=s)
asked(f"ncclBroadcast {f} {f} 24 {UINT8} 0 {handle}")
comm.all_gather(out, x, stream=s)
asked(f"ncclAllGather {f} {g} 24 {UINT8} {handle}")
comm.reduce_scatter(out, x, stream=s)
asked(f"ncclReduceScatter {f} {g} 6 {FLOAT32} {SUM} {handle}")
to_oneself = [f"ncclSend {f} 24 {UINT8} 0 {handle}", f"ncclRecv {g} 24 {UINT8} 0 {handle}"]
for call in (comm.all_to_all, comm.gather, comm.scatter):
    call(out, x, stream=s)
    asked("ncclGroupStart", *to_oneself, "ncclGroupEnd")
with comm.group():
    comm.send(x, 0, stream=s)
    comm.recv(out, 0, stream=s)
asked("ncclGroupStart", *to_oneself, "ncclGroupEnd")
comm.barrier(stream=s)
assert [line.split()[0] for line in calls()] == ["ncclAllReduce"]

# The legacy stream has a handle of its own: 0 would be whatever NCCL takes it for.
comm.all_reduce(x, stream=ab.legacy_stream(DEVICE))
asked(f"ncclAllReduce {f} {f} 6 {FLOAT32} {SUM} 1")

# A view with gaps is packed.
comm.all_reduce(x[::2], stream=s)
(line,) = calls()
assert line.split()[1] != f
assert line.split()[3:5] == ["3", str(FLOAT32)]

with pytest.raises(TypeError, match="NCCL has no 'sum' of int16"):
    comm.all_reduce(ab.empty(3, "int16", device=DEVICE))
with pytest.raises(TypeError, match="NCCL has no 'prod' of complex64"):
    comm.all_reduce(mixed, "prod")
with pytest.raises(ab.DeviceError):
    comm.all_reduce(ab.ones(3, device="cpu"))
# Order, and traces.
with ab.trace() as t:
    ab.fill(x, 1, stream=other)
    comm.all_reduce(x, stream=s)
assert [each.kind for each in t.operations if each.kind != "record"][-1] == "collective"
with ab.hazards("check"):
    other.wait_stream(s)
    ab.fill(x, 1, stream=other)
    calls()
    with pytest.raises(ab.RaceError):
        comm.all_reduce(x, stream=s)
    asked()

# A stream that holds work: the call comes after it, and the calls of other streams after that one.
content = np.arange(6, dtype="float32")
y = ab.zeros(6, device=DEVICE, stream=other)
ab.synchronize()
gate = ab.testing.Gate(s)
ab.copy(x, ab.array(content, device=DEVICE, stream=s), stream=s)
comm.all_reduce(x, out=out, stream=s)
comm.all_reduce(y, stream=other)
asked()
gate.open()
ab.synchronize()
assert [line.split()[-1] for line in calls()] == [handle, f"{other.handle:x}"]
assert out.numpy().tolist() == content.tolist()

# In graphs: captured once, when the graph is made, with its order.
ab.fill(out, 0, stream=s)
with ab.capture(s) as graph:
    ab.fill(x, 3, stream=s)
    comm.all_reduce(x, out=out, stream=s)
    ab.copy(y, out, stream=s)
assert [(node.kind, node.name) for node in graph.nodes][1] == ("external", "all_reduce")
for _ in range(3):
    graph.launch(s)
(line,) = calls()
assert line.startswith(f"ncclAllReduce {f} {g} 6 {FLOAT32} {SUM} ")
assert y.numpy().tolist() == [3.0] * 6

# Not where the other ranks cannot know whether it runs.
flag = ab.ones(1, "int32", device=DEVICE, stream=s)
with pytest.raises(ab.CaptureError, match="a branch or loop"), ab.capture(s), s:
    ab.run_if(flag, lambda: comm.all_reduce(x))

graph.close()
comm.close()
assert managed[1:] == ["destroy"]
print("fine")
