"""What is asked of nccl4py, of which a stand-in notes the calls, on a simulated GPU."""

import contextlib
import enum
import sys
import types

import pytest

calls = []


class NcclRedOp(enum.IntEnum):
    SUM, PROD, MAX, MIN, AVG = range(5)


class UniqueId(bytes):
    @staticmethod
    def from_bytes(data):
        return UniqueId(data)


def described(value):
    if isinstance(value, ab.Array):
        assert value.__dlpack_device__() == (2, 0)
        assert value.contiguous
        return value.ptr, value.shape, value.dtype.str
    return value


class Communicator:
    @classmethod
    def init(cls, size, rank, identifier):
        calls.append(("init", size, rank, bytes(identifier)))
        return cls()

    def __getattr__(self, name):
        if name == "get_async_error":
            return lambda: 0
        return lambda *arguments, **named: calls.append((name, *map(described, arguments), *named.items()))


@contextlib.contextmanager
def group():
    calls.append("begin")
    yield
    calls.append("end")


nccl, core = types.ModuleType("nccl"), types.ModuleType("nccl.core")
nccl.__spec__ = types.SimpleNamespace(name="nccl")
core.NcclRedOp, core.UniqueId, core.Communicator, core.group = NcclRedOp, UniqueId, Communicator, group
core.get_unique_id = lambda: UniqueId(b"identifier")
nccl.core = core
sys.modules.update({"nccl": nccl, "nccl.core": core})

import anabranch as ab  # noqa: E402

comm = ab.distributed.init()
assert (comm.backend, comm.device) == ("nccl", ab.Device("cuda:0"))
assert calls == [("init", 1, 0, b"identifier")]
calls.clear()
s, other = ab.Stream("cuda:0"), ab.Stream("cuda:0")
handle = ("stream", s.handle)
x, out = ab.empty(6, device="cuda:0", stream=s), ab.empty(6, device="cuda:0", stream=s)
halves = ab.empty((2, 3), "float16", device="cuda:0", stream=s)
mixed = ab.empty(3, "complex64", device="cuda:0", stream=s)
f, g, moved = (x.ptr, (6,), "<f4"), (out.ptr, (6,), "<f4"), (x.ptr, (24,), "|u1")


def asked(*expected):
    assert calls == list(expected), calls
    calls.clear()


comm.all_reduce(x, stream=s)
asked(("allreduce", f, f, NcclRedOp.SUM, handle))
comm.all_reduce(x, "avg", out, stream=s)
asked(("allreduce", f, g, NcclRedOp.AVG, handle))
comm.reduce(x, "max", stream=s)
asked(("reduce", f, f, NcclRedOp.MAX, 0, handle))
comm.all_reduce(halves, "min", stream=s)
asked(("allreduce", *[(halves.ptr, (6,), "<f2")] * 2, NcclRedOp.MIN, handle))
comm.all_reduce(mixed, stream=s)
asked(("allreduce", *[(mixed.ptr, (6,), "<f4")] * 2, NcclRedOp.SUM, handle))
comm.broadcast(x, stream=s)
asked(("broadcast", moved, moved, 0, handle))
comm.all_gather(out, x, stream=s)
asked(("allgather", moved, (out.ptr, (24,), "|u1"), handle))
comm.reduce_scatter(out, x, stream=s)
asked(("reduce_scatter", f, g, NcclRedOp.SUM, handle))
comm.all_to_all(out, x, stream=s)
comm.gather(out, x, stream=s)
comm.scatter(out, x, stream=s)
assert [call[0] for call in calls] == ["alltoall", "gather", "scatter"]
calls.clear()
with comm.group():
    comm.send(x, 0, stream=s)
    comm.recv(out, 0, stream=s)
asked("begin", ("send", moved, 0, handle), ("recv", (out.ptr, (24,), "|u1"), 0, handle), "end")
comm.barrier(stream=s)
assert calls[0][0] == "allreduce"
calls.clear()

# The legacy stream has a handle of its own: 0 would be whatever NCCL takes it for.
comm.all_reduce(x, stream=ab.legacy_stream("cuda:0"))
asked(("allreduce", f, f, NcclRedOp.SUM, ("stream", 1)))

# A view with gaps is packed.
comm.all_reduce(x[::2], stream=s)
(name, packed, *_) = calls.pop()
assert packed[0] != x.ptr
assert packed[1:] == ((3,), "<f4")

with pytest.raises(TypeError, match="NCCL has no 'sum' of int16"):
    comm.all_reduce(ab.empty(3, "int16", device="cuda:0"))
with pytest.raises(TypeError, match="NCCL has no 'prod' of complex64"):
    comm.all_reduce(mixed, "prod")
with pytest.raises(ab.DeviceError):
    comm.all_reduce(ab.ones(3, device="cpu"))
with ab.capture(s), pytest.raises(ab.CaptureError, match="over NCCL cannot be captured"):
    comm.all_reduce(x, stream=s)

# Order, and traces.
with ab.trace() as t:
    ab.fill(x, 1, stream=other)
    comm.all_reduce(x, stream=s)
assert [each.kind for each in t.operations if each.kind != "record"][-1] == "collective"
with ab.hazards("check"):
    other.wait_stream(s)
    ab.fill(x, 1, stream=other)
    calls.clear()
    with pytest.raises(ab.RaceError):
        comm.all_reduce(x, stream=s)
    assert calls == []
comm.close()
assert calls == [("destroy",)]
print("fine")
