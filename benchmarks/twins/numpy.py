"""NumPy, which does at once what a stream does in its turn."""

from collections.abc import Callable, Iterator
from typing import Any

from bench_math import CALLS, ELEMENTS, ROUNDS, SIDE, SMALL, numbers
from harness import Case, Timed, implementation, repeat

twin = implementation("numpy")


@twin("memory.alloc_free_4k")
def alloc_free() -> Iterator[Case]:
    import numpy

    def batch(calls: int) -> None:
        make, dtype = numpy.empty, numpy.float32
        for _ in repeat(calls):
            make(1024, dtype)

    yield Timed(batch)


@twin("memory.zeros_free_4k")
def zeros_free() -> Iterator[Case]:
    import numpy

    def batch(calls: int) -> None:
        make, dtype = numpy.zeros, numpy.float32
        for _ in repeat(calls):
            make(1024, dtype)

    yield Timed(batch)


@twin("copy.4k")
def copy() -> Iterator[Case]:
    import numpy

    dst, src = (numpy.zeros(1024, "float32") for _ in range(2))

    def batch(calls: int) -> None:
        copy = numpy.copyto
        for _ in repeat(calls):
            copy(dst, src)

    yield Timed(batch)


@twin("copy.fill_4k")
def fill() -> Iterator[Case]:
    import numpy

    dst = numpy.zeros(1024, "float32")

    def batch(calls: int) -> None:
        fill = dst.fill
        for _ in repeat(calls):
            fill(1)

    yield Timed(batch)


def computed(compute: Callable[[Any], object], calls: int, rounds: int, *shape: int) -> Iterator[Case]:
    x = numbers(*shape)

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            compute(x)

    yield Timed(batch, calls=calls, rounds=rounds)


@twin("math.add_small")
def add_small() -> Iterator[Case]:
    yield from computed(lambda x: x + x, 200, ROUNDS, SMALL)


@twin("math.sum_small")
def sum_small() -> Iterator[Case]:
    yield from computed(lambda x: x.sum(), 200, ROUNDS, SMALL)


@twin("math.add_10m")
def add_10m() -> Iterator[Case]:
    yield from computed(lambda x: x + x, CALLS, ROUNDS, ELEMENTS)


@twin("math.sum_10m")
def sum_10m() -> Iterator[Case]:
    yield from computed(lambda x: x.sum(), CALLS, ROUNDS, ELEMENTS)


@twin("math.max_10m")
def max_10m() -> Iterator[Case]:
    yield from computed(lambda x: x.max(), CALLS, ROUNDS, ELEMENTS)


@twin("math.sum_rows")
def sum_rows() -> Iterator[Case]:
    yield from computed(lambda x: x.sum(axis=1), CALLS, ROUNDS, SIDE, SIDE)


@twin("math.sum_columns")
def sum_columns() -> Iterator[Case]:
    yield from computed(lambda x: x.sum(axis=0), CALLS, ROUNDS, SIDE, SIDE)


# As in bench_copy.py.
ROWS, COLUMNS = 4096, 2048


def large(part: str, dtype: str = "float32") -> Iterator[Case]:
    import numpy

    source = numpy.ones((ROWS, COLUMNS), dtype)  # unlike those of zeros, its pages are in memory
    src = {"rows": source[::2], "elements": source[:, ::2], "transposed": source.T}[part]
    dst = numpy.zeros(src.shape, dtype)

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            numpy.copyto(dst, src)

    yield Timed(batch, calls=3, rounds=15)


@twin("copy.strided.rows")
def strided_rows() -> Iterator[Case]:
    yield from large("rows")


@twin("copy.strided.elements")
def strided_elements() -> Iterator[Case]:
    yield from large("elements")


@twin("copy.transposed.float32")
def transposed() -> Iterator[Case]:
    yield from large("transposed")


@twin("copy.transposed.float64")
def transposed_wide() -> Iterator[Case]:
    yield from large("transposed", "float64")
