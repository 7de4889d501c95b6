"""Strided and transposing copies on a GPU, beside contiguous copies of as many bytes."""

from collections.abc import Callable, Iterator

from gpu import DEVICE, guarded
from harness import OURS, Case, SetUp, Timed, implementation, repeat

import anabranch as ab

PREFIX = "copy.cuda."


def by(name: str) -> Callable[[str], Callable[[SetUp], SetUp]]:
    """Like `harness.implementation`, for copies on a GPU: they have no floor in C, so their IDs begin differently."""
    return lambda identifier: lambda set_up: implementation(name)(PREFIX + identifier)(guarded(set_up))


ours, contiguous = by(OURS), by("contiguous")

# Far more than a GPU's caches hold.
SIDE = 512
CALLS = 20


def large(dst: ab.Array, src: ab.Array) -> Iterator[Case]:
    """Copy again and again, and wait for the end of the last."""
    stream = ab.Stream(DEVICE)

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            ab.copy(dst, src, stream=stream)
        stream.synchronize()

    yield Timed(batch, calls=CALLS)


@ours("strided.rows")
def strided_rows() -> Iterator[Case]:
    """Copy every other row of 512 float32, of 512 planes of 512 rows."""
    src = ab.zeros((SIDE, SIDE, SIDE), device=DEVICE)[:, ::2]
    yield from large(ab.empty_like(src), src)


@contiguous("strided.rows")
def rows() -> Iterator[Case]:
    yield from large(*(ab.zeros((SIDE, SIDE // 2, SIDE), device=DEVICE) for _ in range(2)))


@ours("transposed.float32")
def transposed() -> Iterator[Case]:
    """Copy 16384 rows of 8192 float32 to as many columns."""
    src = ab.zeros((32 * SIDE, 16 * SIDE), device=DEVICE).T
    yield from large(ab.empty_like(src), src)


@contiguous("transposed.float32")
def straight() -> Iterator[Case]:
    yield from large(*(ab.zeros((32 * SIDE, 16 * SIDE), device=DEVICE) for _ in range(2)))


@ours("transposed.float64")
def transposed_wide() -> Iterator[Case]:
    """The same of float64."""
    src = ab.zeros((32 * SIDE, 16 * SIDE), "float64", device=DEVICE).T
    yield from large(ab.empty_like(src), src)


@contiguous("transposed.float64")
def straight_wide() -> Iterator[Case]:
    yield from large(*(ab.zeros((32 * SIDE, 16 * SIDE), "float64", device=DEVICE) for _ in range(2)))
