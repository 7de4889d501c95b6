"""The kernels in Warp on the CUDA device."""

import functools
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from gpu import DEVICE
from harness import Case
from kernels import LIMIT, Problem
from kernels.device_time import gpu_arrays, gpu_case, gpu_stream
from kernels.registration import LARGE, on_cuda
from twins.warp import start

NAMES = (
    *("saxpy_float32", "saxpy_float64", "five_point", "nine_point", "seven_point", "transposed"),
    *("gather_int32", "gather_int64", "step2", "rows", "histogram", "mandelbrot"),
)


@functools.cache
def kernels() -> SimpleNamespace:
    wp = start().wp
    floats, planes, boxes = (wp.array(dtype=wp.float32, ndim=ndim) for ndim in (1, 2, 3))
    doubles, integers, longs = (wp.array(dtype=dtype) for dtype in (wp.float64, wp.int32, wp.int64))
    counts = wp.array(dtype=wp.int32, ndim=2)

    @wp.kernel(enable_backward=False)
    def saxpy_float32(alpha: wp.float32, x: floats, y: floats):
        i = wp.tid()
        y[i] = alpha * x[i] + y[i]

    @wp.kernel(enable_backward=False)
    def saxpy_float64(alpha: wp.float64, x: doubles, y: doubles):
        i = wp.tid()
        y[i] = alpha * x[i] + y[i]

    @wp.kernel(enable_backward=False)
    def five_point(u: planes, v: planes):
        i, j = wp.tid()
        if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1:
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    @wp.kernel(enable_backward=False)
    def nine_point(u: planes, v: planes):
        i, j = wp.tid()
        if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1:
            straight = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            diagonal = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
            v[i, j] = 0.125 * (straight + diagonal)

    @wp.kernel(enable_backward=False)
    def seven_point(u: boxes, v: boxes):
        i, j, k = wp.tid()
        inner = i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1
        if inner and k > 0 and k < u.shape[2] - 1:
            rows = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
            around = rows + u[i, j, k - 1] + u[i, j, k + 1]
            v[i, j, k] = 0.125 * (around + u[i, j, k] + u[i, j, k])

    @wp.kernel(enable_backward=False)
    def transposed(u: planes, v: planes):
        i, j = wp.tid()
        v[i, j] = u[j, i]

    @wp.kernel(enable_backward=False)
    def gather_int32(x: floats, index: integers, y: floats):
        i = wp.tid()
        y[i] = x[index[i]]

    @wp.kernel(enable_backward=False)
    def gather_int64(x: floats, index: longs, y: floats):
        i = wp.tid()
        y[i] = x[wp.int32(index[i])]

    @wp.kernel(enable_backward=False)
    def step2(x: floats, y: floats):
        i = wp.tid()
        y[i] = x[i]

    @wp.kernel(enable_backward=False)
    def rows(x: planes, y: planes):
        i, j = wp.tid()
        y[i, j] = x[i, j]

    @wp.kernel(enable_backward=False)
    def histogram(x: integers, bins: integers):
        i = wp.tid()
        wp.atomic_add(bins, x[i], 1)

    @wp.kernel(enable_backward=False)
    def mandelbrot(counts: counts):
        i, j = wp.tid()
        x0 = wp.float64(3.0) * wp.float64(j) / wp.float64(counts.shape[1]) - wp.float64(2.0)
        y0 = wp.float64(2.0) * wp.float64(i) / wp.float64(counts.shape[0]) - wp.float64(1.0)
        x = wp.float64(0.0)
        y = wp.float64(0.0)
        count = wp.int32(0)
        while count < LIMIT and x * x + y * y <= wp.float64(4.0):
            following = x * x - y * y + x0
            y = wp.float64(2.0) * x * y + y0
            x = following
            count += 1
        counts[i, j] = count

    return SimpleNamespace(**locals())


@on_cuda("warp", "warp", names=NAMES, sizes=LARGE)
def warp(problem: Problem, wp: Any) -> Iterator[Case]:
    kernel = getattr(kernels(), problem.name)
    ours = gpu_arrays(problem)
    stream = wp.Stream(DEVICE, cuda_stream=gpu_stream().handle)
    inputs = [*problem.scalars, *map(wp.from_dlpack, ours)]
    yield from gpu_case(problem, partial(wp.launch, kernel, problem.dim, inputs, stream=stream), ours[-1].numpy)
