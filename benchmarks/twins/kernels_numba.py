"""The kernels as loops of Numba's own, over the rows in parallel, which block until they are done."""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from harness import Case
from kernels import LIMIT, PLAIN, Problem
from kernels.device_time import blocking_case, cpu_arrays
from kernels.registration import on_cpu


@functools.cache
def loops() -> dict[str, Callable[..., None]]:
    """Return the loop of each kernel. It compiles when it is called."""
    from numba import njit, prange

    parallel = njit(parallel=True, fastmath=False)

    @parallel
    def saxpy(alpha, x, y):
        for i in prange(y.size):
            y[i] = alpha * x[i] + y[i]

    @parallel
    def five_point(u, v):
        n, m = u.shape
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    @parallel
    def nine_point(u, v):
        n, m = u.shape
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                straight = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                diagonal = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
                v[i, j] = 0.125 * (straight + diagonal)

    @parallel
    def seven_point(u, v):
        n, m, p = u.shape
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                for k in range(1, p - 1):
                    rows = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                    around = rows + u[i, j, k - 1] + u[i, j, k + 1]
                    v[i, j, k] = 0.125 * (around + u[i, j, k] + u[i, j, k])

    @parallel
    def transposed(u, v):
        n, m = v.shape
        for i in prange(n):
            for j in range(m):
                v[i, j] = u[j, i]

    @parallel
    def gather(x, index, y):
        for i in prange(y.size):
            y[i] = x[index[i]]

    @parallel
    def copied(x, y):
        for i in prange(y.size):
            y[i] = x[i]

    @parallel
    def rows(x, y):
        n, m = y.shape
        for i in prange(n):
            for j in range(m):
                y[i, j] = x[i, j]

    @parallel
    def mandelbrot(counts):
        n, m = counts.shape
        for i in prange(n):
            for j in range(m):
                x0 = 3.0 * j / m - 2.0
                y0 = 2.0 * i / n - 1.0
                x = y = 0.0
                count = 0
                while count < LIMIT and x * x + y * y <= 4.0:
                    x, y = x * x - y * y + x0, 2.0 * x * y + y0
                    count += 1
                counts[i, j] = count

    named = {loop.__name__: loop for loop in (five_point, nine_point, seven_point, transposed, rows, mandelbrot)}
    several = {"saxpy": saxpy, "gather": gather}
    several = {name: several[name.split("_")[0]] for name in NAMES if name.split("_")[0] in several}
    return {**named, **several, "step2": copied, "backwards": copied}


# Its loops have no atomics.
NAMES = [name for name in PLAIN if name != "histogram"]


@on_cpu("numba", NAMES)
def numba(problem: Problem) -> Iterator[Case]:
    arrays: tuple[Any, ...] = cpu_arrays(problem)
    yield from blocking_case(problem, partial(loops()[problem.name], *problem.scalars, *arrays), arrays[-1])
