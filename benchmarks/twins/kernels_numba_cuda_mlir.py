"""The compiler of our Python kernels for CUDA, with the same functions in a wrapper as its users write it."""

import functools
from collections.abc import Iterator
from typing import Any

from harness import Case
from kernels import PLAIN, Problem
from kernels.cuda_source import BLOCKS, grid_of
from kernels.device_time import gpu_arrays, gpu_case, gpu_stream
from kernels.ours import KERNELS
from kernels.registration import LARGE, on_cuda

# The atomics of its own have other names. Its launch of saxpy_mixed gave other results than CUDA C++ on an H200, in 94
# of 100 elements.
NAMES = [name for name in PLAIN if name not in ("histogram", "saxpy_mixed")]

# By dimensions of the index space; the grid's x is its last axis.
HEADS = {
    1: ("n", "i = cuda.grid(1)", "i < n", "i"),
    2: ("n, m", "j, i = cuda.grid(2)", "i < n and j < m", "(i, j)"),
    3: ("n, m, p", "k, j, i = cuda.grid(3)", "i < n and j < m and k < p", "(i, j, k)"),
}


@functools.cache
def kernel_of(function: Any, ndim: int, count: int) -> Any:
    """Return a kernel that calls the function for each index with so many arguments."""
    from numba_cuda_mlir import cuda

    sizes, index, inside, name = HEADS[ndim]
    arguments = ", ".join(f"a{position}" for position in range(count))
    text = f"def entry({sizes}, {arguments}):\n {index}\n if {inside}:\n  body({name}, {arguments})\n"
    scope: dict[str, Any] = {"cuda": cuda, "body": cuda.jit(device=True)(function)}
    exec(text, scope)
    return cuda.jit(scope["entry"])


@on_cuda("numba-cuda-mlir", "numba_cuda_mlir.cuda", names=NAMES, sizes=LARGE)
def numba_cuda_mlir(problem: Problem, cuda: Any) -> Iterator[Case]:
    ours, ndim = gpu_arrays(problem), len(problem.dim)
    arguments = (*problem.dim, *problem.scalars, *map(cuda.as_cuda_array, ours))
    kernel = kernel_of(KERNELS[problem.name].__wrapped__, ndim, len(problem.scalars) + len(ours))
    block = BLOCKS[ndim][0]
    configured = kernel[grid_of(problem.dim, block), block, cuda.external_stream(gpu_stream().handle)]
    yield from gpu_case(problem, lambda: configured(*arguments), ours[-1].numpy)
