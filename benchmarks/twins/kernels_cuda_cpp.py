"""The kernels in CUDA C++ by hand, with the block shape that is fastest for the size."""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from harness import Case
from kernels import MAKERS, Problem
from kernels.cuda_source import SOURCE, Size3, blocks_of, grid_of, numbers_of
from kernels.device_time import GpuTimer, gpu_arrays, gpu_case, gpu_stream
from kernels.registration import on_cuda

import anabranch as ab

TRIES = 5


@functools.cache
def module() -> Any:
    return ab.Module(SOURCE)


@on_cuda("c++", names=MAKERS)
def cuda_cpp(problem: Problem) -> Iterator[Case]:
    kernel = module().get_kernel(problem.name)

    def launch_of(block: Size3, arrays: tuple[ab.Array, ...]) -> Callable[[], object]:
        config = ab.LaunchConfig(grid_of(problem.dim, block), block)
        return partial(ab.launch, kernel, config, *numbers_of(problem, arrays), *arrays, stream=gpu_stream())

    def shortest(block: Size3) -> float:
        timer = GpuTimer(launch_of(block, tried))
        return min(timer.measure(problem.calls("cuda")) for _ in range(TRIES))

    tried = gpu_arrays(problem)
    best = min(blocks_of(problem), key=shortest)
    arrays = gpu_arrays(problem)
    yield from gpu_case(problem, launch_of(best, arrays), arrays[-1].numpy)
