"""Kernels that store arrays and tuples in parts of arrays, and unpack rows; and what NumPy makes of the same code."""

from __future__ import annotations

import numpy as np

import anabranch as ab

ROWS = 28


def run_stores(i: int, x: ab.In, points: ab.In, result: ab.InOut):
    result[0, i] = points[i]
    result[1, i, :] = points[i, :]
    result[2, i] = points[i, ::-1]
    result[3, i, 1:] = points[i, :-1]
    result[4, i] = (x[i], 1, 2.5)
    result[5, i, :] = x[i], i, True
    result[6, i, ::2] = (x[i],)
    result[7, i] = x[i : i + 1]
    result[8, i] = 0.5
    row = result[9, i]
    row[:] = points[i]
    row[:] *= 2
    result[10, i] += points[i]
    result[10, i] *= x[i]
    result[11, i, 1:] -= points[i, 1:]
    result[12, -1 - i] = points[i]
    result[13, i, ...] = points[i]
    result[14:16, i] = points[i]
    result[16:18, i] = (x[i], 2, 3)
    result[18:20, i, 0] = points[i, :2]
    a, b, c = points[i]
    result[20, i] = c, a, b
    first, second = points[i, 1:]
    result[21, i, 0] = first - second
    for down, right, _ in points:
        result[22, i, 0] += down * right
    one, other = points[i : i + 2] if i < 4 else points[:2]
    result[23, i] = one
    result[23, i, 1] = other[2]
    for k in range(24, 28):  # shifted within itself
        result[k, i] = points[i]
    result[24, i, 1:] = result[24, i, :-1]
    result[25, i, :-1] = result[25, i, 1:]
    backwards = result[26, i, ::-1]
    backwards[1:] = backwards[:-1]
    result[27, i, :] = result[27, i, 1:2]
    result[27, i] *= result[27, i]


stores = ab.kernel(run_stores)


def arrays():
    """Return the arguments of `stores` for five indices."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 9, 6) / 4, rng.integers(1, 9, (5, 3)).astype("float32"), np.ones((ROWS, 5, 3))


def of_stores(x, points, result):
    """Return what `stores` makes of `result`."""
    result = result.copy()
    for i in range(5):
        run_stores(i, x, points, result)
    return result
