"""Warp on the CPU, which has no streams there: every call returns when its work is done."""

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from harness import Case, Timed, implementation, repeat

twin = implementation("warp")


@functools.cache
def start() -> Any:
    """Warp and its kernels."""
    import warp as wp

    wp.config.quiet = True
    wp.config.log_level = 40  # what newer versions go by
    wp.init()

    @wp.kernel
    def empty():
        pass

    @wp.kernel
    def scaled_sum(alpha: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        z[i] = alpha * x[i] + y[i]

    @wp.kernel
    def increment(y: wp.array(dtype=int)):
        i = wp.tid()
        y[i] = y[i] + 1

    return SimpleNamespace(wp=wp, empty=empty, scaled_sum=scaled_sum, increment=increment)


@twin("launch.enqueue_empty")
def enqueue_empty() -> Iterator[Case]:
    kernels = start()

    def batch(calls: int) -> None:
        launch, kernel = kernels.wp.launch, kernels.empty
        for _ in repeat(calls):
            launch(kernel, 1, device="cpu")

    yield Timed(batch)


@twin("launch.4args")
def four_arguments() -> Iterator[Case]:
    kernels = start()
    x, y, z = (kernels.wp.zeros(1, dtype=float, device="cpu") for _ in range(3))

    def batch(calls: int) -> None:
        launch, kernel = kernels.wp.launch, kernels.scaled_sum
        for _ in repeat(calls):
            launch(kernel, 1, inputs=[2.0, x, y], outputs=[z], device="cpu")

    yield Timed(batch)


@twin("launch.chain1000")
def chain() -> Iterator[Case]:
    kernels = start()
    y = kernels.wp.zeros(1, dtype=int, device="cpu")

    def batch(calls: int) -> None:
        launch, kernel = kernels.wp.launch, kernels.increment
        for _ in repeat(calls):
            launch(kernel, 1, inputs=[y], device="cpu")

    yield Timed(batch, calls=1000)


@twin("memory.alloc_free_4k")
def alloc_free() -> Iterator[Case]:
    wp = start().wp

    def batch(calls: int) -> None:
        make, dtype = wp.empty, wp.float32
        for _ in repeat(calls):
            make(1024, dtype=dtype, device="cpu")

    yield Timed(batch)


@twin("memory.zeros_free_4k")
def zeros_free() -> Iterator[Case]:
    wp = start().wp

    def batch(calls: int) -> None:
        make, dtype = wp.zeros, wp.float32
        for _ in repeat(calls):
            make(1024, dtype=dtype, device="cpu")

    yield Timed(batch)


@twin("copy.4k")
def copy() -> Iterator[Case]:
    wp = start().wp
    dst, src = (wp.zeros(1024, dtype=float, device="cpu") for _ in range(2))

    def batch(calls: int) -> None:
        copy = wp.copy
        for _ in repeat(calls):
            copy(dst, src)

    yield Timed(batch)


@twin("copy.fill_4k")
def fill() -> Iterator[Case]:
    dst = start().wp.zeros(1024, dtype=float, device="cpu")

    def batch(calls: int) -> None:
        fill = dst.fill_
        for _ in repeat(calls):
            fill(1.0)

    yield Timed(batch)
