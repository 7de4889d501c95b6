"""Programs of kernels that take integers of each type, and halves, wherever a compiler may mistake their kind."""

import itertools
from typing import NamedTuple

import numpy as np

import anabranch as ab

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class Program(NamedTuple):
    kernel: object
    dim: tuple
    arrays: tuple
    expected: np.ndarray


@ab.kernel
def store_at_tuple(ij, x: ab.In, y: ab.Out):
    i, j = ij
    y[i, j] = x[i, j]


@ab.kernel
def store_in_slice(i, x: ab.In, y: ab.Out):
    y[i][:] = x[i, 0]


@ab.kernel
def look_up(i, x: ab.In, table: ab.In, y: ab.Out):
    y[i] = table[x[i]] + table[:][x[i]]


@ab.kernel
def look_up_in_rows(i, x: ab.In, table: ab.In, y: ab.Out):
    y[i] = table[x[i]][0] + table[x[i], 0]


@ab.kernel
def put(i, x: ab.In, table: ab.In, y: ab.Out):
    y[x[i] - 0] = table[i]
    y[x[i]] += 1


@ab.kernel
def cut(i, x: ab.In, table: ab.In, y: ab.Out):
    y[i] = len(table[x[i] :]) + 1000 * len(table[: x[i]])


@ab.kernel
def count(i, x: ab.In, y: ab.Out):
    total = 0
    for k in range(x[i]):
        total += k
    for k in range(x[i] - 2, x[i]):
        total += k
    y[i] = total


@ab.kernel
def lengths(ij, x: ab.In, y: ab.Out):
    i, j = ij
    y[i, j] = len(x) + 100 * len(x[i]) + 10_000 * len(x[1:])


@ab.kernel
def compare(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = (x[i] < y[i]) + 2 * (x[i] <= y[i]) + 4 * (x[i] > y[i]) + 8 * (x[i] >= y[i]) + 16 * (x[i] == y[i])


@ab.kernel
def mix_bits(i, x: ab.In, y: ab.In, out: ab.Out):
    mixed = x[i] ^ y[i]
    mixed |= y[i]
    out[i] = (x[i] & y[i]) + 2 * mixed


@ab.kernel
def extremes(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = max(x[i], y[i]) - min(x[i], y[i], x[i - 1])


@ab.kernel
def nearest(i, x: ab.In, y: ab.Out):
    y[i] = round(x[i])


@ab.kernel
def of_half(i, x: ab.In, y: ab.Out):
    y[i] = x[i] * x[i] + x[i - 1] * 3


def far(dtype):
    """Return numbers at the ends of a dtype, and in its middle, where the sign is."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([0, 1, most, least, most // 2 + 1, 3, most - 1, 2], dtype)


def programs():
    """Yield programs; each writes one array, the last parameter of its kernel."""
    for source, target in itertools.product(INTEGERS, ["uint8", "int32", "int64", "uint64", "float32", "complex128"]):
        x = far(source).reshape(2, 4)
        yield Program(store_at_tuple, x.shape, (x,), x.astype(target))
    x = np.array([[-1, 2], [3, -4]], "int16")
    yield Program(store_in_slice, (2,), (x,), np.full((2, 3), x[:, :1], "int64"))
    for dtype in "uint8", "uint16", "int8", "uint32", "uint64":
        x = np.array([0, 1, 3, 77, 127, 90] if dtype == "int8" else [0, 1, 255, 128, 200, 254], dtype)
        table = np.arange(256.0)
        yield Program(look_up, (6,), (x, table), 2 * table[x])
        yield Program(look_up_in_rows, (6,), (x, table[:, None]), 2 * table[x])
        places = np.zeros(256)
        places[x] = np.arange(6) + 1
        yield Program(put, (6,), (x, np.arange(6.0)), places)
        yield Program(cut, (6,), (x, table), 256 - x.astype("int64") + 1000 * x.astype("int64"))
        many = x[1:].astype("int64")  # not 0, which less 2 is a great number if it has no sign
        yield Program(count, (5,), (x[1:],), many * (many - 1) // 2 + np.maximum(2 * many - 3, -3))
    x = np.zeros((3, 5), "float32")
    yield Program(lengths, x.shape, (x,), np.full(x.shape, 20_503))
    for dtype in "uint8", "uint32", "uint64", "int32":
        x, y = far(dtype), np.array([2.5, 1, -1, np.nan, 0, 3, np.inf, 100.0])
        pairs = (x < y, x <= y, x > y, x >= y, x == y)
        yield Program(compare, (8,), (x, y), sum(2**bit * answer for bit, answer in enumerate(pairs)))
        y = np.roll(x, 3).astype("float64")
        smaller = np.minimum(np.minimum(x, y), np.roll(x, 1))
        yield Program(extremes, (8,), (x, y), np.maximum(x, y) - smaller)
    for one, other in ("uint8", "int8"), ("int16", "uint32"), ("bool", "uint16"), ("uint8", "bool"), ("int32", "uint8"):
        x, y = (far(dtype) if dtype != "bool" else np.arange(8) % 3 == 0 for dtype in (one, other))
        wide, wide_y = x.astype("int64"), y.astype("int64")
        yield Program(mix_bits, (8,), (x, y), (wide & wide_y) + 2 * (wide ^ wide_y | wide_y))
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.2, -7.7, 1e6])
    yield Program(nearest, (8,), (x,), np.rint(x))
    yield Program(nearest, (8,), (far("int32"),), far("int32").astype("float64"))
    x = np.array([0.9, -1.5, 200.75, 3], "float16")
    yield Program(of_half, (4,), (x,), (x.astype("f4") ** 2 + np.roll(x, 1) * np.float32(3)).astype("float64"))


def name_of(program):
    return "-".join([program.kernel.name, *(array.dtype.name for array in program.arrays), program.expected.dtype.name])
