"""Compiled CPU kernels, called as the core calls them: by address, with arguments packed by hand.

What kernels compute through a launch is in `contract/kernels`.
"""

import ctypes
import math
import struct
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.kernels import Kernel

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
ATOMIC = [np.dtype(code).name for code in "bhilBHILfd"]
SCALE = 3
TABLE = (1.5, 2.5, 3.5)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "cache"))


def code_of(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.name, value.ndim, bool(value.flags.c_contiguous), not value.flags.writeable)
    return ("scalar", np.asarray(value).dtype.name)


def pack(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return struct.pack(f"{1 + 2 * value.ndim}q", value.ctypes.data, *value.shape, *value.strides)
    return struct.pack({"i": "q", "u": "Q", "f": "d"}[np.asarray(value).dtype.kind], value)


def prepare(kernel: Kernel, dim: int | tuple[int, ...], *args: Any) -> Any:
    """Return a function (begin, end) that runs a part of a launch and returns the index at which it ended."""
    dims = (dim,) if isinstance(dim, int) else dim
    compiled = kernel.compile_cpu((len(dims), tuple(map(code_of, args))))
    entry = ENTRY(compiled.address)
    sizes = (ctypes.c_int64 * len(dims))(*dims)
    slots = b"".join(map(pack, args))

    def run(begin: int = 0, end: int = math.prod(dims)) -> int:
        return entry(begin, end, ctypes.addressof(sizes), slots)

    run.keepalive = compiled, args
    return run


def run(kernel: Kernel, dim: int | tuple[int, ...], *args: Any) -> None:
    prepare(kernel, dim, *args)()


def square(value):
    return value * value


def square_of_sum(a, b):
    return square(a + b)


# What a kernel computes


def test_saxpy_is_vectorised(monkeypatch):
    from anabranch.kernels._cpu import codegen

    text = []
    emit = codegen._ObjectLibrary.emit_object

    def emit_and_keep(library, entry):
        code = emit(library, entry)
        text.append(str(library._final_module))
        return code

    monkeypatch.setattr(codegen._ObjectLibrary, "emit_object", emit_and_keep)
    x = np.zeros((4, 4), "f4")

    @ab.kernel
    def rows(ij, a: np.float32, x: ab.In, y: ab.InOut):
        y[ij] = a * x[ij] + y[ij]

    @ab.kernel
    def line(i, a: np.float32, x: ab.In, y: ab.InOut):
        y[i] = a * x[i] + y[i]

    rows.compile_cpu((2, (code_of(1.0), code_of(x), code_of(x))))
    line.compile_cpu((1, (code_of(1.0), code_of(x[0]), code_of(x[0]))))
    assert [" x float>" in module for module in text] == [True, True]


def test_scalars_are_as_wide_as_declared():
    @ab.kernel
    def kernel(i, value: np.float32, y: ab.Out):
        y[i] = value

    y = np.zeros(1)
    run(kernel, 1, 0.1, y)
    assert y[0] == np.float32(0.1)
    run(kernel, 1, 7, y)
    assert y[0] == 7


def test_unsigned_scalars_keep_their_highest_bit():
    @ab.kernel
    def kernel(i, value, y: ab.Out):
        y[i] = value >> 1

    y = np.zeros(1, "u8")
    run(kernel, 1, np.uint64(2**64 - 1), y)
    assert y[0] == 2**63 - 1


@pytest.mark.parametrize("shape", [(7,), (1, 1), (3, 5), (4, 1), (2, 3, 4), (3, 1, 2, 4)])
def test_every_part_of_a_launch(shape):
    @ab.kernel
    def line(i, x: ab.InOut):
        x[i] += 1 + i

    @ab.kernel
    def block(index, weights: ab.In, x: ab.InOut):
        for axis in range(x.ndim):
            x[index] += index[axis] * weights[axis] + 1

    size = math.prod(shape)
    weights = np.array([1, 10, 100, 1000])
    expected = (
        1 + np.arange(size)
        if len(shape) == 1
        else len(shape)
        + sum(index * weight for index, weight in zip(np.indices(shape), weights, strict=False)).reshape(-1)
    )
    x = np.zeros(shape, "i8")
    part = prepare(line, shape, x) if len(shape) == 1 else prepare(block, shape, weights, x)
    for begin in range(size + 1):
        for end in range(begin, size + 1):
            x[...] = 0
            part(begin, end)
            inside = (np.arange(size) >= begin) & (np.arange(size) < end)
            assert np.array_equal(x.reshape(-1), np.where(inside, expected, 0))


def test_arrays_without_dimensions():
    @ab.kernel
    def kernel(i, x: ab.In, y: ab.InOut):
        y[()] += x[i]

    y = np.array(1.0)
    run(kernel, 3, np.arange(3.0), y)
    assert y == 4


def test_helpers_and_constants():
    factor = 2
    geometry = type(math)("geometry")
    exec("def norm(a, b):\n    return a * a + b * b", geometry.__dict__)

    def scaled(value):
        return factor * value + TABLE[1]

    cube = pytest.importorskip("numba").njit(lambda value: value * value * value)

    @ab.kernel
    def kernel(i, x: ab.In, y: ab.Out):
        y[i] = scaled(square_of_sum(x[i], SCALE)) + cube(x[i]) + math.sqrt(x[i]) + np.exp(x[i]) + np.pi
        y[i] += geometry.norm(x[i], 1.0)

    x = np.arange(4.0)
    y = np.zeros(4)
    run(kernel, 4, x, y)
    assert np.allclose(y, 2 * (x + 3) ** 2 + 2.5 + x**3 + np.sqrt(x) + np.exp(x) + np.pi + x**2 + 1)


@pytest.mark.parametrize("size", [10, 200_000, 10**6 // 8 + 1000])
def test_arrays_as_constants(size):
    def make(table):
        @ab.kernel
        def kernel(i, y: ab.Out):
            y[i] = table[-1 - i]

        return kernel

    for _ in range(2):  # the second is from the disk cache, if that is right
        y = np.zeros(3)
        part = prepare(make(np.arange(float(size))), 3, y)
        part()
        assert y.tolist() == [size - 1, size - 2, size - 3]


def test_float16_is_computed_in_float32():
    @ab.kernel
    def kernel(i, factor, x: ab.In, y: ab.InOut):
        y[i] = factor * x[i] + y[i] if x[i] > 0 else math.sqrt(-x[i])

    x = np.linspace(-2, 2, 64).astype("f2")
    y = np.ones(64, "f2")
    run(kernel, 64, np.float16(3), x, y)
    wide = x.astype("f4")
    assert np.array_equal(y, np.where(wide > 0, 3 * wide + 1, np.sqrt(np.abs(wide))).astype("f2"))


# Atomics


@pytest.mark.parametrize("dtype", ATOMIC)
def test_atomics_across_threads(dtype, in_threads):
    @ab.kernel
    def kernel(i, counts: ab.InOut, extremes: ab.InOut):
        ab.atomic_add(counts, i % 4, 1)
        ab.atomic_min(extremes, (0, -1), i % 100)
        ab.atomic_max(extremes, (1, i % 2), i % 100 + 1)

    counts = np.zeros(8, dtype)[::2]
    extremes = np.full((2, 4), 50, dtype)[:, ::2]
    part = prepare(kernel, 400, counts, extremes)
    in_threads(4, lambda thread: part(100 * thread, 100 * thread + 100))
    assert counts.tolist() == [100] * 4
    assert extremes.tolist() == [[50, 0], [99, 100]]


def test_atomics_of_floats_ignore_nan():
    @ab.kernel
    def kernel(i, x: ab.InOut, values: ab.In):
        ab.atomic_min(x, 0, values[i])
        ab.atomic_max(x, 1, values[i])

    for dtype in ("f4", "f8"):
        x = np.array([np.nan, 0], dtype)
        run(kernel, 3, x, np.array([1, np.nan, 2], dtype))
        assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_functions_of_numpy_wrap_around_at_the_width_of_the_dtype(dtype):
    @ab.kernel
    def halved(i, x: ab.In, y: ab.Out):
        y[i] = np.add(x[i], x[i]) // 2

    x = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 3], dtype)
    y = np.zeros(3, "int64")
    run(halved, 3, x, y)
    assert y.tolist() == [-1, 0, 3]
