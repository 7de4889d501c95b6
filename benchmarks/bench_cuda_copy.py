"""Strided and transposing copies on a GPU, beside contiguous copies of as many bytes."""

from collections.abc import Iterator

from gpu import DEVICE, on_gpu
from harness import OURS, Case, Timed, repeat

import anabranch as ab

ours, contiguous = on_gpu(OURS), on_gpu("contiguous")

# Far more than a GPU's caches hold.
SIDE = 512
CALLS = 20


def large(dst: ab.Array, src: ab.Array) -> Iterator[Case]:
    """Copy again and again, and wait for the end of the last."""
    with ab.Stream(DEVICE) as stream:

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                ab.copy(dst, src)
            stream.synchronize()

        yield Timed(batch, calls=CALLS)


@ours("copy.strided.rows")
def strided_rows() -> Iterator[Case]:
    """Copy every other row of 512 float32, of 512 planes of 512 rows."""
    src = ab.zeros((SIDE, SIDE, SIDE), device=DEVICE)[:, ::2]
    yield from large(ab.empty_like(src), src)


@contiguous("copy.strided.rows")
def rows() -> Iterator[Case]:
    yield from large(*(ab.zeros((SIDE, SIDE // 2, SIDE), device=DEVICE) for _ in range(2)))


@ours("copy.transposed.float32")
def transposed() -> Iterator[Case]:
    """Copy 16384 rows of 8192 float32 to as many columns."""
    src = ab.zeros((32 * SIDE, 16 * SIDE), device=DEVICE).T
    yield from large(ab.empty_like(src), src)


@contiguous("copy.transposed.float32")
def straight() -> Iterator[Case]:
    yield from large(*(ab.zeros((32 * SIDE, 16 * SIDE), device=DEVICE) for _ in range(2)))


@ours("copy.transposed.float64")
def transposed_wide() -> Iterator[Case]:
    """The same of float64."""
    src = ab.zeros((32 * SIDE, 16 * SIDE), "float64", device=DEVICE).T
    yield from large(ab.empty_like(src), src)


@contiguous("copy.transposed.float64")
def straight_wide() -> Iterator[Case]:
    yield from large(*(ab.zeros((32 * SIDE, 16 * SIDE), "float64", device=DEVICE) for _ in range(2)))
