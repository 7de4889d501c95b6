"""Calls that are refused before anything is enqueued, and a communicator that works as if there had been none."""

import pickle

import numpy as np
import pytest

import anabranch as ab

comm = ab.distributed.init(timeout=60)
n = comm.size
x, out = ab.ones(4), ab.ones(4)
wide, halves, integers = ab.ones(4 * n), ab.ones(4, "float16"), ab.ones(4, "int32")
mixed = ab.ones(4, "complex64")
elsewhere = ab.ones(4, device="cpu:1")
closed = ab.ones(4)
closed.close()
frozen = np.ones(4, "float32")
frozen.flags.writeable = False
frozen = ab.asarray(frozen)


def refused(error, text, call, *arguments, **named):
    with pytest.raises(error, match=text):
        call(*arguments, **named)


refused(TypeError, "x is an anabranch Array, not ndarray", comm.all_reduce, np.ones(4))
refused(ValueError, "op is one of 'sum', .* not 'mean'", comm.all_reduce, x, "mean")
refused(TypeError, "'sum' of float16", comm.all_reduce, halves)
refused(TypeError, "'min' of complex64", comm.all_reduce, mixed, "min")
refused(TypeError, "average of int32", comm.all_reduce, integers, "avg")
refused(ValueError, "out is float32 of shape", comm.all_reduce, integers, "sum", out)
refused(ValueError, "out is float32 of shape", comm.reduce, integers, "sum", comm.rank, out)
refused(ab.DeviceError, "x is on cpu:1", comm.all_reduce, elsewhere)
refused(ab.DeviceError, "is not of cpu:0", comm.all_reduce, x, stream=ab.Stream("cpu:1"))
refused(TypeError, "a stream is a Stream or None, not int", comm.all_reduce, x, stream=7)
refused(ab.ClosedError, "closed", comm.all_reduce, closed)
refused(ValueError, "x is read-only", comm.all_reduce, frozen)
refused(ValueError, f"root is a rank from 0 to {n - 1}, not {n}", comm.broadcast, x, n)
refused(ValueError, "root is a rank from 0", comm.reduce, x, "sum", -1)
refused(TypeError, "root is a rank, an int, not str", comm.broadcast, x, "0")
refused(ValueError, f"out is 4 elements .* must be {4 * (n + 1)}|out is 4 elements", comm.all_gather, out, ab.ones(5))
refused(ValueError, "x is 4 elements", comm.reduce_scatter, ab.ones(3), x)
refused(ValueError, "must be equal", comm.all_to_all, ab.ones(3), x)
refused(ValueError, f"to is a rank from 0 to {n - 1}", comm.send, x, n)
refused(ValueError, "wait for itself", comm.recv, x, comm.rank)
refused(ValueError, "color is not negative", comm.split, -1)
refused(TypeError, "color is an int or None, not str", comm.split, "a")
refused(TypeError, "key is an int or None, not float", comm.split, 0, 1.5)
refused(TypeError, "timeout is a number", ab.distributed.init, timeout=None)
refused(TypeError, "lives in this process", pickle.dumps, comm)
if comm.rank == 0:
    refused(ValueError, "out is None on rank 0", comm.gather, None, x)
    refused(ValueError, "x is None on rank 0", comm.scatter, out, None)
refused(ValueError, "backend is 'nccl', 'mpi' or None", ab.distributed.init, backend="gloo")
refused(ValueError, r"is the device, not 'gloo': write init\(backend='mpi'\)", ab.distributed.init, "gloo")
refused(ValueError, r"is the device, not 'nccl': write init\(backend='nccl'\)", ab.distributed.init, "nccl")
refused(ValueError, "without size and address", ab.distributed.init, rank=1)
for seconds in (0, float("inf"), float("nan"), 1e10):
    refused(ValueError, "more than 0 and at most", ab.distributed.init, timeout=seconds)
report = ab.testing.explore(lambda: comm.all_reduce(ab.ones(4)))
assert report.ok if comm.size == 1 else "of several ranks cannot be explored" in str(report), report
with comm.group():
    refused(ab.Error, "all_reduce cannot be part of a group", comm.all_reduce, x)
    comm.send(x, comm.rank)
    refused(ValueError, "one operation of one stream", comm.recv, out, comm.rank, stream=ab.Stream())
    comm.recv(out, comm.rank)

comm.all_reduce(x)
assert (x.numpy() == n).all()

part = comm.split(comm.rank % 2, -comm.rank)
assert part.size == len(range(comm.rank % 2, n, 2))
y = ab.full(4, comm.rank)
part.all_reduce(y)
assert (y.numpy() == sum(range(comm.rank % 2, n, 2))).all()
nobody = comm.split(None if comm.rank == 0 else 1)
assert (nobody is None) == (comm.rank == 0)

z = ab.zeros(0)
comm.all_reduce(z)  # of nothing
with part as same:
    assert same is part
    part.all_reduce(y)
    part.close()
assert part.closed
part.close()
refused(ab.ClosedError, "is closed", part.all_reduce, y)
comm.all_reduce(x)
assert (x.numpy() == n * n).all()
print("fine")
