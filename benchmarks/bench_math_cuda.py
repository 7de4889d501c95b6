"""Operators and reductions on the CUDA device: how long they take there, beside CuPy's."""

from collections.abc import Callable, Iterator
from typing import Any

from gpu import DEVICE, guarded
from harness import OURS, Case, Counted, Timed, implementation, repeat
from kernels.device_time import GpuTimer, gpu_stream

import anabranch as ab

PREFIX = "math.cuda."
ELEMENTS = 10_000_000
SIDE = 3_000
SMALL = 64
CALLS = 50
ROUNDS = 31

# The arrays' shape, and what is computed; the same for arrays of ours and of CuPy.
COMPUTATIONS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "add_10m": ((ELEMENTS,), lambda x: x + x),
    "sum_10m": ((ELEMENTS,), lambda x: x.sum()),
    "max_10m": ((ELEMENTS,), lambda x: x.max()),
    "argmax_10m": ((ELEMENTS,), lambda x: x.argmax()),
    "sum_rows": ((SIDE, SIDE), lambda x: x.sum(axis=1)),
    "sum_columns": ((SIDE, SIDE), lambda x: x.sum(axis=0)),
}


def on_device(launch: Callable[[], object]) -> Iterator[Case]:
    """Yield the time of what `launch` puts into the stream of all implementations."""
    launch()
    gpu_stream().synchronize()
    yield Counted(GpuTimer(launch).measure, CALLS, "ns", rounds=ROUNDS, warms_up=True)


def _register(name: str, shape: tuple[int, ...], compute: Callable[[Any], Any]) -> None:
    def set_up() -> Iterator[Case]:
        stream = gpu_stream()
        x = ab.ones(shape, stream=stream)

        def launch() -> None:
            with stream:
                compute(x)

        yield from on_device(launch)

    set_up.__doc__ = f"The time of {name} on the device."
    implementation(OURS)(PREFIX + name)(guarded(set_up))


for _name, (_shape, _compute) in COMPUTATIONS.items():
    _register(_name, _shape, _compute)


def add_small() -> Iterator[Case]:
    """Enqueue the sum of two arrays of 64 elements; what it costs the host."""
    with ab.Stream(DEVICE) as stream:
        x = ab.ones(SMALL)

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                x + x

        yield Timed(batch, stream.synchronize)


implementation(OURS)(PREFIX + "add_small")(guarded(add_small))
