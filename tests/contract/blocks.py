"""Kernels that run in blocks, for tests on devices and of the code that is compiled for CUDA."""

import numpy as np

import anabranch as ab

TILE = 16


@ab.kernel
def transposed(index, x: ab.In, y: ab.Out):
    row, column = index
    i, j = ab.block(TILE, TILE)
    tile = ab.shared((TILE, TILE + 1), "float32")
    tile[i, j] = x[row, column]
    ab.barrier()
    y[column - j + i, row - i + j] = tile[j, i]


@ab.kernel
def sums(n, x: ab.In, y: ab.Out):
    place = ab.block(64)
    part = ab.shared(64, np.float64)
    part[place] = x[n] if n < x.shape[0] else 0.0
    step = 32
    while step > 0:
        ab.barrier()
        if place < step:
            part[place] += part[place + step]
        step //= 2
    if place == 0:
        y[n // 64] = part[0]


@ab.kernel
def product(index, a: ab.In, b: ab.In, c: ab.Out):
    row, column = index
    i, j = ab.block(8, 8)
    left = ab.shared((8, 8), "float64")
    right = ab.shared((8, 8), "float64")
    total = 0.0
    for start in range(0, a.shape[1], 8):
        left[i, j] = a[row, start + j]
        right[i, j] = b[start + i, column]
        ab.barrier()
        for k in range(8):
            total += left[i, k] * right[k, j]
        ab.barrier()
    c[row, column] = total


@ab.kernel
def places(index, y: ab.Out):
    i, j, k = index
    a, b, c = ab.block(2, 3, 4)
    y[i, j, k] = 100 * a + 10 * b + c


@ab.kernel
def counted(n, x: ab.In, y: ab.InOut):
    place = ab.block(32)
    bins = ab.shared(4, "int32")
    if place < 4:
        bins[place] = 0
    ab.barrier()
    ab.atomic_add(bins, x[n], 1)
    ab.barrier()
    if place < 4:
        ab.atomic_add(y, place, bins[place])


def scaled(values, factor):
    return values[0] * factor


@ab.kernel
def through_a_helper(n, y: ab.Out):
    place = ab.block(8)
    first = ab.shared(1, "int64")
    if place == 0:
        first[0] = n
    ab.barrier()
    y[n] = scaled(first, 10) + place


@ab.kernel
def many_live_values(n, x: ab.InOut):
    place = ab.block(16)
    part = ab.shared(16, "float64")
    a, b, c = x[n], 2.0 * x[n], n > 20
    row = x[n : n + 1]
    for turn in range(3):
        part[place] = a + b
        ab.barrier()
        a, b = b, part[(place + 1) % 16]
        if c:
            b += turn
        ab.barrier()
    row[0] = a - b


def after_many_live_values(x):
    a, b, late = x.copy(), 2 * x, np.arange(len(x)) > 20
    for turn in range(3):
        neighbour = np.roll((a + b).reshape(-1, 16), -1, axis=1).ravel()
        a, b = b, neighbour + late * turn
    return a - b
