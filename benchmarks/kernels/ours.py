"""The kernels as a user writes them: plainly, over the whole array."""

import anabranch as ab
from kernels import BLOCK, LIMIT


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


@ab.kernel
def five_point(ij, u: ab.In, v: ab.Out):
    i, j = ij
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1:
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@ab.kernel
def nine_point(ij, u: ab.In, v: ab.Out):
    i, j = ij
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1:
        straight = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        diagonal = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
        v[i, j] = 0.125 * (straight + diagonal)


@ab.kernel
def seven_point(ijk, u: ab.In, v: ab.Out):
    i, j, k = ijk
    n, m, p = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1 and 0 < k < p - 1:
        around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
        v[i, j, k] = 0.125 * (around + u[i, j, k] + u[i, j, k])


@ab.kernel
def transposed(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[i, j] = u[j, i]


@ab.kernel
def gather(i, x: ab.In, index: ab.In, y: ab.Out):
    y[i] = x[index[i]]


@ab.kernel
def copied(i, x: ab.In, y: ab.Out):
    y[i] = x[i]


@ab.kernel
def histogram(i, x: ab.In, bins: ab.InOut):
    ab.atomic_add(bins, x[i], 1)


@ab.kernel
def mandelbrot(ij, counts: ab.Out):
    i, j = ij
    n, m = counts.shape
    x0 = 3.0 * j / m - 2.0
    y0 = 2.0 * i / n - 1.0
    x = y = 0.0
    count = 0
    while count < LIMIT and x * x + y * y <= 4.0:
        x, y = x * x - y * y + x0, 2.0 * x * y + y0
        count += 1
    counts[i, j] = count


@ab.kernel
def tiles(index, u: ab.In, v: ab.Out):
    i, j = index
    row, column = ab.block(8, 32)
    tile = ab.shared((32, 33), "float32")
    top, left = 4 * (i - row), j - column
    for k in range(0, 32, 8):
        tile[row + k, column] = u[left + row + k, top + column]
    ab.barrier()
    for k in range(0, 32, 8):
        v[top + row + k, left + column] = tile[column, row + k]


@ab.kernel
def block_sums(i, x: ab.In, y: ab.Out):
    place = ab.block(BLOCK)
    part = ab.shared(BLOCK, "float32")
    part[place] = x[i]
    step = BLOCK // 2
    while step > 0:
        ab.barrier()
        if place < step:
            part[place] += part[place + step]
        step //= 2
    if place == 0:
        y[i // BLOCK] = part[0]


KERNELS = {
    "saxpy_float32": saxpy,
    "saxpy_float64": saxpy,
    "saxpy_complex64": saxpy,
    "saxpy_mixed": saxpy,
    "five_point": five_point,
    "nine_point": nine_point,
    "seven_point": seven_point,
    "transposed": transposed,
    "gather_int32": gather,
    "gather_int64": gather,
    "step2": copied,
    "backwards": copied,
    "rows": copied,
    "histogram": histogram,
    "mandelbrot": mandelbrot,
    "tiles": tiles,
    "block_sums": block_sums,
}
