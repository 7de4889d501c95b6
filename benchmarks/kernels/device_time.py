"""How long a kernel takes on the device, whatever the host does meanwhile.

A batch is put into one stream behind something that holds the stream until all of it is there, between two events with
timing; so a kernel that is shorter than its launch is not measured as long as that. What it costs the device to go from
one kernel to the next is part of the time, and is most of it where the arrays have 1K elements. On the CUDA device all
implementations use the same stream, kernel after kernel on the same arrays: what fits into the caches is there.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

from gpu import DEVICE
from harness import REST_SECONDS, Case, Counted, Timed, repeat

import anabranch as ab
from kernels import Problem, arrays_of

ROUNDS = 31

# What the GPU does until the batch is in its queue: it looks at a clock.
HOLD = """
extern "C" __global__ void hold(long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}
"""
SHORTEST_HOLD = 50_000
LONGEST_HOLD = 100_000_000


@functools.cache
def gpu_stream() -> ab.Stream:
    """Return the stream of all implementations on the CUDA device."""
    return ab.Stream(DEVICE)


@functools.cache
def hold() -> tuple[Any, ab.LaunchConfig]:
    return ab.Module(HOLD).get_kernel("hold"), ab.LaunchConfig(1, 1)


class GpuTimer:
    """Times batches of a launch on the stream of all implementations."""

    def __init__(self, launch: Callable[[], object]) -> None:
        self._launch = launch
        self._begin, self._end = (ab.Event(enable_timing=True, device=DEVICE) for _ in range(2))
        self._hold = SHORTEST_HOLD

    def measure(self, calls: int) -> float:
        """Return the nanoseconds that one of so many kernels takes."""
        while True:
            stream, launch, (kernel, config) = gpu_stream(), self._launch, hold()
            ab.launch(kernel, config, self._hold, stream=stream)
            self._begin.record(stream)
            for _ in repeat(calls):
                launch()
            self._end.record(stream)
            ready = not self._begin.query()  # all was there before the first kernel began
            self._end.synchronize()
            if ready or self._hold >= LONGEST_HOLD:
                return self._begin.elapsed_time(self._end) * 1e6 / calls
            self._hold *= 2


def gpu_case(problem: Problem, launch: Callable[[], object], result: Callable[[], Any]) -> Iterator[Case]:
    """Run the kernel once, check what it computed, and yield the case of its time on the CUDA device.

    `launch` puts one kernel into `gpu_stream`; `result` returns what it wrote, as NumPy's array.
    """
    launch()
    gpu_stream().synchronize()
    problem.check(result())
    yield Counted(GpuTimer(launch).measure, problem.calls("cuda"), "ns", rounds=ROUNDS, warms_up=True)


@functools.lru_cache(maxsize=1)
def _inputs(problem: Problem) -> tuple[ab.Array, ...]:
    return tuple(ab.array(array, stream=gpu_stream()) for array in arrays_of(problem)[:-1])


def gpu_arrays(problem: Problem) -> tuple[ab.Array, ...]:
    """Return arrays on the CUDA device: those that are only read are shared, the last one is new."""
    inputs = _inputs(problem)
    bases = (*inputs, ab.array(arrays_of(problem)[-1], stream=gpu_stream()))
    gpu_stream().synchronize()
    return tuple(view(base) for view, base in zip(problem.views, bases, strict=True))


def cpu_arrays(problem: Problem) -> tuple[Any, ...]:
    """Return NumPy's arrays: those that are only read are shared, the last one is new."""
    *inputs, written = arrays_of(problem)
    return tuple(view(base) for view, base in zip(problem.views, (*inputs, written.copy()), strict=True))


def blocking_case(problem: Problem, call: Callable[[], object], written: Any) -> Iterator[Case]:
    """The same as `gpu_case` for a function that runs the kernel on the CPU and returns when it is over."""
    call()
    problem.check(written.copy())

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            call()

    yield Timed(batch, lambda: time.sleep(REST_SECONDS), calls=problem.calls("cpu"), rounds=ROUNDS)
