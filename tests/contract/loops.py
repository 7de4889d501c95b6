"""Kernels with loops over what Python loops over, attributes, and stores in parts of arrays; and what they compute."""

# ruff: noqa: B905 - kernels have no strict zip

from __future__ import annotations

import enum
import math

import numpy as np

import anabranch as ab

NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))
WEIGHTED = ((-1, 0.25), (0, 0.5), (1, 0.25))
WEIGHTS = (0.25, 0.5, 0.25)
LOOPS = 14


def run_loops(i: int, table: ab.In, x: ab.In, mask: ab.In, result: ab.Out):
    for k in range(result.shape[1]):
        result[i, k] = 0.0
    for value in table[i]:
        result[i, 0] += value
    for j, value in enumerate(table[i]):
        result[i, 1] += j * value
    for j, value in enumerate(x[::-2], 3):
        result[i, 2] += j * value
    for left, right in zip(table[i], x):
        result[i, 3] += left * right
    for j, (left, right) in enumerate(zip(table[i], x[1:])):
        result[i, 4] += j * left * right
    for down, right in NEIGHBOURS:
        result[i, 5] = 3 * result[i, 5] + 2 * down + right
    for step, weight in WEIGHTED:
        result[i, 6] += weight * x[(i + step) % len(x)]
    for j, weight in enumerate(WEIGHTS):
        result[i, 7] += j * weight
    for step, weight in zip((1, 2, 4), WEIGHTS):
        result[i, 8] += step * weight
    for j, value in zip(range(9, 0, -2), x):
        result[i, 9] += j * value
    for row in table:
        for value in row:
            result[i, 10] += value
    for j, row in enumerate(table[1:]):
        result[i, 11] += j * row[i]
    for truth in mask:
        if truth:
            result[i, 12] += 1
    for value in x[2:2]:
        result[i, 13] += value
    for value in x:
        if value > 2:
            break
        result[i, 13] += value


loops = ab.kernel(run_loops)


def computed(run, columns, *arrays):
    """Return what the function of a kernel computes in Python, in a row for each row of the first array."""
    result = np.zeros((len(arrays[0]), columns))
    for i in range(len(result)):
        run(i, *arrays, result)
    return result


def of_loops(table, x, mask):
    return computed(run_loops, LOOPS, table, x, mask)


PARTS = 6


def run_parts(i: int, x: ab.In, whole: ab.Out, parts: ab.Out):
    parts[i, 0, 1:] = 1.5
    parts[i, 1, :] = x[i]
    parts[i, 2, ::2] = i
    parts[i, 3, -2:-1] = x[i] > 1
    parts[i, ..., 0] = 7
    parts[i, 4] = x[i]
    parts[i, 5, ...] = 2
    row = parts[i, 5]
    row[::-2] = 3
    row[1:2] = False
    if i == 0:
        whole[...] = 4


fill_parts = ab.kernel(run_parts)


def of_parts(x, length):
    whole, parts = np.zeros((2, 3)), np.zeros((len(x), PARTS, length))
    for i in range(len(x)):
        run_parts(i, x, whole, parts)
    return whole, parts


ATTRIBUTES = 26


class Side(enum.IntEnum):
    LEFT = 1
    RIGHT = 2


def run_attributes(i: int, table: ab.In, z: ab.In, mask: ab.In, result: ab.Out):
    result[i, 0] = table.ndim + z.ndim
    result[i, 1] = table.T[1, i] + len(table.T)
    result[i, 2] = table[1:, ::2].T[2, 1]
    result[i, 3] = table[i, 0].real + table[i, 0].imag + i.real
    result[i, 4] = z[i].real - z[i].imag
    result[i, 5] = 1 if table is None else 2
    result[i, 6] = -mask[i]
    result[i, 7] = abs(mask[i])
    result[i, 8] = table[..., 1][i] + table[i, ...][0] + z.T[i].imag
    result[i, 9] = i**0.5 + 2 ** table[i, 0] + pow(i + 1, 2)
    result[i, 10] = abs((i + 1) ** z[i]) + pow(table[i, 1], 1j).imag
    result[i, 11] = 4 * ((i, 1) == (2, 1)) + 2 * ((i, 1.5) != (i, 1)) + ((i, 1) == (i, 1, 2))
    result[i, 12] = 8 * ((i, 1) < (2, 0)) + 4 * ((i, 1) <= (i, 1)) + 2 * ((i,) >= (i, 1)) + ((2, i) > (2, 1))
    result[i, 13] = 4 * (i == Side.LEFT) + 2 * (i != Side.RIGHT) + (i < Side.RIGHT)
    result[i, 14] = sum(table[i]) + max(table[i]) - min((table[i, 0], 0.25))
    result[i, 15] = -math.log(i + 2) + math.sin(i) * math.cos(mask[i])
    root = math.sqrt(i + 1) if i < 2 else 5
    result[i, 16] = root
    result[i, 17] = math.atan2(np.float32(0.1), i + 1) + math.hypot(i, 0.5) - math.pow(i + 1, -2)
    result[i, 18] = math.floor(np.float32(1e12) * table[i, 2]) // 7 + math.ceil(i + 3)
    result[i, 19] = 4 * bool(table.shape[0]) + 2 * (not table.shape[1]) + (table.shape[0] or 7)
    result[i, 20] = 1 if table.shape[0] else 2
    nothing = 0.0
    result[i, 21] = math.atan2(nothing, -nothing) + np.arctan2(-nothing, nothing) + math.atan2(0, 0)
    result[i, 22] = (len(z) + z[i]).imag + (z[i] * table.size).real
    result[i, 23] = abs(z[i] / table.shape[1]) + abs(z[i] - z.size)
    result[i, 24] = (z.mean() - np.mean(mask)).real
    hole = math.nan if i == 1 else z[i].imag
    result[i, 25] = 8 * (hole in (0.5, 2.0)) + 4 * (i * 1.0 in (1, 3)) + 2 * (i not in (0, 2)) + (z[i] in (z[0], 1j))


attributes = ab.kernel(run_attributes)


def of_attributes(table, z, mask):
    return computed(run_attributes, ATTRIBUTES, table, z, mask.astype(int))  # NumPy's booleans have no sign


REDUCTIONS = 14


def run_reductions(i: int, floats: ab.In, small: ab.In, holed: ab.In, result: ab.Out):
    result[i, 0] = floats[i].sum()
    result[i, 1] = floats.max()
    result[i, 2] = np.min(floats[:, i])
    result[i, 3] = floats[i, ::2].prod()
    result[i, 4] = small.sum()  # beyond 127
    result[i, 5] = np.prod(small[:4])
    result[i, 6] = small.min() - small[::-1].max()
    result[i, 7] = holed[1:].max()
    result[i, 8] = holed.min()
    result[i, 9] = floats[i, 3:3].sum() + np.prod(floats[i, 3:3])
    result[i, 10] = floats.T[i].sum()
    result[i, 11] = floats[i].mean() + np.mean(floats)
    result[i, 12] = small[:5].mean()
    result[i, 13] = holed[:2].mean() + np.mean(holed[::-1])


reductions = ab.kernel(run_reductions)


def of_reductions(floats, small, holed):
    return computed(run_reductions, REDUCTIONS, floats, small, holed)


def arrays_to_reduce():
    """Return arrays whose sums are exact, with integers of 8 bits and with a NaN."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 5, (4, 7)).astype(float), np.arange(40, 127, 3, "int8"), np.array([2.0, 1.0, np.nan, 3.0])


BOOLEANS = 12


def run_booleans(i: int, mask: ab.In, x: ab.In, z: ab.In, result: ab.Out):
    result[i, 0] = mask[i] / 2 + x[i] / (1 + mask[i])
    result[i, 1] = (i + 7) // (mask[i] or 2) + mask[i] // 1
    result[i, 2] = 5 % (mask[i] or 3) + mask[i] % 2
    positive = 3
    positive *= x[i] > 0
    result[i, 3] = positive
    scaled = x[i]
    scaled *= mask[i]
    scaled /= True
    result[i, 4] = scaled
    result[i, 5] = max(mask[i], x[i]) + 10 * min(i, mask[i])
    result[i, 6] = (mask[i] << 3) + (9 >> mask[i])
    quotient, rest = divmod(7, mask[i] or 4)
    result[i, 7] = quotient + rest
    result[i, 8] = 4 * (mask[i] == 1.0) + 2 * (x[i] < mask[i]) + (mask[i] != z[i])
    turned = z[i]
    turned *= mask[i]
    result[i, 9] = turned.imag
    result[i, 10] = 1 if z[i] else 2
    result[i, 11] = 2 * (not z[i]) + bool(z[i] - z[i]) + 4 * bool(2.0) + 8 * (not 4.0)


booleans = ab.kernel(run_booleans)


def of_booleans(mask, x, z):
    return computed(run_booleans, BOOLEANS, mask.astype(int), x, z)


def booleans_beside_numbers():
    return np.array([True, False, True, False]), np.array([0.5, -1.5, 3.0, 0.0]), np.array([1 + 2j, 0, 1, -3j])


def run_changes(i: int, table: ab.InOut, bits: ab.InOut, other: ab.In, y: ab.Out):
    row = table[i]
    row *= 3
    row += other[i]
    row -= other[0, 1:2]
    row[1] = 4
    reverse = row[::-2]
    reverse /= 2
    reverse += other[i, :4]
    y[i] = row.sum() + reverse[0]
    mask = bits[i]
    mask += 100
    mask <<= 1
    mask ^= np.int8(21)
    mask //= 3
    mask %= -7
    if i == 0:
        last = table[4:]
        last **= 2
        last -= other[0]


changes = ab.kernel(run_changes)


def arrays_to_change():
    rng = np.random.default_rng(0)
    numbers = [rng.integers(-9, 9, shape).astype(dtype) for shape, dtype in (((6, 8), float), ((4, 3), "int8"))]
    return [*numbers, rng.integers(-9, 9, (4, 8)).astype("float32")]


def of_changes(table, bits, other):
    """Return what becomes of the first two arrays, and what the kernel stores."""
    changed, y = [table.copy(), bits.copy()], np.zeros(4)
    for i in range(4):
        run_changes(i, *changed, other, y)
    return changed[0], changed[1], y
