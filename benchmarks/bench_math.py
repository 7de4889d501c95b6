"""Operators and reductions of arrays, on the CPU."""

from collections.abc import Callable, Iterator

import numpy
from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)

ELEMENTS = 10_000_000
SIDE = 3_000
SMALL = 64
CALLS = 10
ROUNDS = 21


def numbers(*shape: int) -> numpy.ndarray:
    """Return the elements that each implementation computes with."""
    return numpy.random.default_rng(0).random(shape, "float32")


def timed(compute: Callable[[ab.Array], ab.Array], *shape: int) -> Iterator[Case]:
    """Yield the time until the result is there."""
    with ab.Stream("cpu") as stream:
        x = ab.array(numbers(*shape), device="cpu")

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                compute(x)
                stream.synchronize()

        yield Timed(batch, calls=CALLS, rounds=ROUNDS)


def enqueued(compute: Callable[[ab.Array], ab.Array]) -> Iterator[Case]:
    """Yield what a call costs the host, while the stream keeps up."""
    with ab.Stream("cpu") as stream:
        x = ab.array(numbers(SMALL), device="cpu")

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                compute(x)

        yield Timed(batch, stream.synchronize)


@ours("math.add_small")
def add_small() -> Iterator[Case]:
    """Enqueue the sum of two arrays of 64 elements."""
    yield from enqueued(lambda x: x + x)


@ours("math.sum_small")
def sum_small() -> Iterator[Case]:
    """Enqueue the sum of the elements of such an array."""
    yield from enqueued(lambda x: x.sum())


@ours("math.add_10m")
def add_10m() -> Iterator[Case]:
    """Add two arrays of 10 M float32."""
    yield from timed(lambda x: x + x, ELEMENTS)


@ours("math.sum_10m")
def sum_10m() -> Iterator[Case]:
    """Add up 10 M float32."""
    yield from timed(lambda x: x.sum(), ELEMENTS)


@ours("math.max_10m")
def max_10m() -> Iterator[Case]:
    """Find the greatest of 10 M float32."""
    yield from timed(lambda x: x.max(), ELEMENTS)


@ours("math.sum_rows")
def sum_rows() -> Iterator[Case]:
    """Add up each row of a matrix of 3000 by 3000 float32."""
    yield from timed(lambda x: x.sum(axis=1), SIDE, SIDE)


@ours("math.sum_columns")
def sum_columns() -> Iterator[Case]:
    """Add up each column of it."""
    yield from timed(lambda x: x.sum(axis=0), SIDE, SIDE)
