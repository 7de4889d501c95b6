"""CuPy's operators and reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench_math_cuda import COMPUTATIONS, PREFIX, SMALL, on_device
from gpu import guarded
from harness import Case, Timed, implementation, repeat
from kernels.device_time import gpu_stream

twin = implementation("cupy")


def _register(name: str, shape: tuple[int, ...], compute: Callable[[Any], Any]) -> None:
    def set_up(cupy: Any) -> Iterator[Case]:
        stream = cupy.cuda.ExternalStream(gpu_stream().handle)
        with stream:
            x = cupy.ones(shape, "float32")

        def launch() -> None:
            with stream:
                compute(x)

        yield from on_device(launch)

    twin(PREFIX + name)(guarded(set_up, "cupy"))


for _name, (_shape, _compute) in COMPUTATIONS.items():
    _register(_name, _shape, _compute)


def add_small(cupy: Any) -> Iterator[Case]:
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.ones(SMALL, "float32")

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                x + x

        yield Timed(batch, stream.synchronize)


twin(PREFIX + "add_small")(guarded(add_small, "cupy"))
