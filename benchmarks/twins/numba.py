"""Numba's own parallel loops, which block until they are done."""

import time
from collections.abc import Iterator

from harness import REST_SECONDS, Case, Timed, implementation, repeat

twin = implementation("numba")


@twin("kernel.saxpy_memory_bound")
def memory_bound() -> Iterator[Case]:
    import numba
    import numpy
    from bench_launch import SAXPY_SIZE

    @numba.njit(parallel=True)
    def saxpy(alpha, x, y):
        for i in numba.prange(y.size):
            y[i] = alpha * x[i] + y[i]

    x, y = (numpy.ones(SAXPY_SIZE, "float32") for _ in range(2))

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            saxpy(0.5, x, y)

    yield Timed(batch, lambda: time.sleep(REST_SECONDS), calls=1, rounds=31)
