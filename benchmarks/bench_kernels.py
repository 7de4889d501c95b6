"""What a kernel takes on the device. The twins that count are by hand: in C++, and on the CPU with Numba too."""

from collections.abc import Callable, Iterator
from functools import partial

from harness import OURS, Case, Counted, repeat
from kernels import MAKERS, Problem
from kernels.device_time import ROUNDS, cpu_arrays, gpu_arrays, gpu_case, gpu_stream
from kernels.ours import KERNELS
from kernels.registration import on_cpu, on_cuda

import anabranch as ab


def launcher(problem: Problem, arrays: tuple[ab.Array, ...], stream: ab.Stream) -> Callable[[], object]:
    return partial(ab.launch, KERNELS[problem.name], problem.dim, *problem.scalars, *arrays, stream=stream)


@on_cuda(OURS, names=MAKERS)
def cuda(problem: Problem) -> Iterator[Case]:
    arrays = gpu_arrays(problem)
    yield from gpu_case(problem, launcher(problem, arrays, gpu_stream()), arrays[-1].numpy)


@on_cpu(OURS)
def cpu(problem: Problem) -> Iterator[Case]:
    arrays = tuple(map(ab.asarray, cpu_arrays(problem)))
    stream = ab.Stream("cpu")
    launch = launcher(problem, arrays, stream)
    begin, end = (ab.Event(enable_timing=True, device="cpu") for _ in range(2))

    def measure(calls: int) -> float:
        with ab.testing.Gate(stream):
            begin.record(stream)
            for _ in repeat(calls):
                launch()
            end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e6 / calls

    launch()
    problem.check(arrays[-1].numpy().copy())
    yield Counted(measure, problem.calls("cpu"), "ns", rounds=ROUNDS, warms_up=True)
