# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Arrays, copies and kernels as a user's typed program uses them."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import anabranch as ab


@ab.kernel
def saxpy(i: int, alpha: float, x: ab.In, y: ab.InOut) -> None:
    y[i] = alpha * x[i] + y[i]


@ab.kernel
def histogram(i: int, values: ab.In, counts: ab.InOut) -> None:
    ab.atomic_add(counts, values[i], 1)


@ab.kernel
def scale(i: int, factor: np.float32, x: ab.In[np.float32, 1], y: ab.Out[np.float32]) -> None:
    y[i] = factor * x[i]


def create(stream: ab.Stream) -> None:
    for made in (
        ab.empty((2, 3)),
        ab.zeros(8, "int32", device="cpu:1"),
        ab.ones((4,), np.float64, stream=stream),
        ab.full(3, 7, pinned=True),
        ab.full(np.int64(3), np.int32(7)),
        ab.empty([2, 3]),
        ab.array([1.0, 2.0], dtype="float16"),
        ab.asarray(np.arange(3)),
        ab.from_dlpack(np.arange(3)),
    ):
        assert_type(made, ab.Array)


def describe(a: ab.Array) -> None:
    assert_type(a.shape, tuple[int, ...])
    assert_type(a.strides, tuple[int, ...])
    assert_type(a.dtype, np.dtype[Any])
    assert_type(a.size + a.nbytes + a.ndim + a.ptr, int)
    assert_type(a.device, ab.Device)
    assert_type(a.pinned, bool)
    assert_type(a[2:10], ab.Array)
    assert_type(a[..., 0], ab.Array)
    assert_type(a[:, None], ab.Array)
    for view in (a.T, a.transpose(1, 0), a.transpose((1, 0)), a.reshape(2, -1), a.reshape((4,)), a.ravel()):
        assert_type(view, ab.Array)
    assert_type(a.squeeze(0).view("int32"), ab.Array)


def convert(a: ab.Array, s: ab.Stream) -> None:
    for made in (a.copy(), a.copy(s), a.astype("int8", stream=s), a.contiguous(), a.to("cpu:1"), a.to(a.device, s)):
        assert_type(made, ab.Array)
    for like in (ab.empty_like(a), ab.zeros_like(np.zeros(3), "int8", pinned=True), ab.full_like(a, 2.0, stream=s)):
        assert_type(like, ab.Array)


def assign(a: ab.Array, data: npt.NDArray[np.float32]) -> None:
    a[2:5] = 1.0
    a[...] = a
    a[:, 0] = data
    a[0] = [1.0, 2.0]
    ab.copy(a, data)
    ab.copy(data, a, count=3)


def numbers(a: ab.Array) -> None:
    assert_type(float(a[0]), float)
    assert_type(int(a[0]), int)
    assert_type([0, 1][a[0]], int)
    a.item()
    a.tolist()
    for row in a:
        assert_type(row, ab.Array)


def read(a: ab.Array) -> None:
    assert_type(a.numpy(), npt.NDArray[Any])
    with a.host(write=True) as view:
        assert_type(view, npt.NDArray[Any])
        view[...] = 0
    a.close()


def move(a: ab.Array, b: ab.Array, stream: ab.Stream) -> None:
    ab.copy(a, b)
    ab.copy(a, b, stream=stream, dst_offset=1, src_offset=2, count=3)
    ab.fill(a, 1.5, stream=stream)
    ab.fill(a, np.float32(1.5))
    ab.fill(a, np.bool_(True))


def trace() -> None:
    with ab.trace() as traced:
        pass
    assert_type(traced.overlap()["cpu:0"], float)
    assert_type(traced.overlap()[ab.Device("cpu")], float)


def launch(x: ab.Array, y: ab.Array, stream: ab.Stream) -> None:
    ab.launch(saxpy, x.size, 2.0, x, y)
    ab.launch(saxpy, (4, 4), 2.0, x, y, stream=stream)
    ab.launch(histogram, x.size, x, y, device="cpu")
    ab.launch(scale, np.int64(4), 2.0, x, y)


def mistakes(a: ab.Array) -> None:
    ab.empty()  # type: ignore[call-arg]
    ab.fill(a, "1")  # type: ignore[arg-type]
    ab.copy(a, [1.0])  # type: ignore[call-overload]
    ab.launch(saxpy, 1.5, 2.0, a, a)  # type: ignore[arg-type]
    saxpy(1, 2.0, a, a)  # type: ignore[operator]
    saxpy[4](2.0, a, a)  # type: ignore[index]
