"""The kernels in Triton, a block of elements to a program; those that its language suits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from harness import Case
from kernels import Problem
from kernels.device_time import gpu_arrays, gpu_case, gpu_stream
from kernels.registration import LARGE, on_cuda

NAMES = (
    *("saxpy_float32", "saxpy_float64", "five_point", "nine_point", "seven_point"),
    *("transposed", "gather_int32", "gather_int64", "step2", "rows", "histogram"),
)
SIZE = 1024  # elements of a program
TILE = 32  # elements of a program along each of two axes


@functools.cache
def kernels(triton: Any) -> SimpleNamespace:
    @triton.jit
    def saxpy(x, y, n, alpha, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(y + at, alpha * tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

    @triton.jit
    def five_point(u, v, n, m, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        i, j = at // m, at % m
        inside = (i > 0) & (i < n - 1) & (j > 0) & (j < m - 1)
        rows = tl.load(u + at - m, inside) + tl.load(u + at + m, inside)
        tl.store(v + at, 0.25 * (rows + tl.load(u + at - 1, inside) + tl.load(u + at + 1, inside)), inside)

    @triton.jit
    def nine_point(u, v, n, m, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        i, j = at // m, at % m
        inside = (i > 0) & (i < n - 1) & (j > 0) & (j < m - 1)
        straight = tl.load(u + at - m, inside) + tl.load(u + at + m, inside)
        straight += tl.load(u + at - 1, inside) + tl.load(u + at + 1, inside)
        diagonal = tl.load(u + at - m - 1, inside) + tl.load(u + at - m + 1, inside)
        diagonal += tl.load(u + at + m - 1, inside) + tl.load(u + at + m + 1, inside)
        tl.store(v + at, 0.125 * (straight + diagonal), inside)

    @triton.jit
    def seven_point(u, v, n, m, p, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        rest, k = at // p, at % p
        i, j = rest // m, rest % m
        inside = (i > 0) & (i < n - 1) & (j > 0) & (j < m - 1) & (k > 0) & (k < p - 1)
        around = tl.load(u + at - m * p, inside) + tl.load(u + at + m * p, inside)
        around += tl.load(u + at - p, inside) + tl.load(u + at + p, inside)
        around += tl.load(u + at - 1, inside) + tl.load(u + at + 1, inside)
        middle = tl.load(u + at, inside)
        tl.store(v + at, 0.125 * (around + middle + middle), inside)

    @triton.jit
    def copied(x, y, n, m, row, column, tile: tl.constexpr):
        i = (tl.program_id(1) * tile + tl.arange(0, tile))[:, None]
        j = (tl.program_id(0) * tile + tl.arange(0, tile))[None, :]
        inside = (i < n) & (j < m)
        tl.store(y + i * m + j, tl.load(x + i * row + j * column, inside), inside)

    @triton.jit
    def step2(x, y, n, step, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(y + at, tl.load(x + at * step, at < n), at < n)

    @triton.jit
    def gather(x, index, y, n, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(y + at, tl.load(x + tl.load(index + at, at < n), at < n), at < n)

    @triton.jit
    def histogram(x, bins, n, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.atomic_add(bins + tl.load(x + at, at < n), tl.full((size,), 1, tl.int32), at < n)

    return SimpleNamespace(**locals())


@on_cuda("triton", "triton", "triton.language", "torch", names=NAMES, sizes=LARGE)
def triton(problem: Problem, triton: Any, language: Any, torch: Any) -> Iterator[Case]:
    # The compiler looks for names among the module's.
    global tl
    tl = language
    ours = gpu_arrays(problem)
    stream = torch.cuda.ExternalStream(gpu_stream().handle)
    with torch.cuda.stream(stream):
        run = _launch(kernels(triton), problem, tuple(map(torch.from_dlpack, ours)))

    def launch() -> None:
        with torch.cuda.stream(stream):
            run()

    yield from gpu_case(problem, launch, ours[-1].numpy)


def _launch(kernels: SimpleNamespace, problem: Problem, arrays: tuple[Any, ...]) -> Callable[[], object]:
    name, dim = problem.name, problem.dim
    if name in ("transposed", "rows"):
        strides = arrays[0].T.stride() if name == "transposed" else arrays[0].stride()
        tiles = (-(-dim[1] // TILE), -(-dim[0] // TILE))
        return lambda: kernels.copied[tiles](*arrays, *dim, *strides, TILE)
    kernel = getattr(kernels, name, None) or getattr(kernels, name.split("_")[0])
    more = arrays[0].stride() if name == "step2" else tuple(map(float, problem.scalars))
    grid = (-(-math.prod(dim) // SIZE),)
    return lambda: kernel[grid](*arrays, *dim, *more, SIZE)
