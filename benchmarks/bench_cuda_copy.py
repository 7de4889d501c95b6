"""Strided and transposing copies on a GPU, beside contiguous copies of as many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from gpu import DEVICE, guarded
from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

# They have no floor in C, so their IDs begin differently.
PREFIX: Final = "copy.cuda."
CALLS: Final = 20


class Copy(NamedTuple):
    """A copy of a part of an array to one that is contiguous; the same for the arrays of each library."""

    shape: tuple[int, ...]
    dtype: str
    part: Callable[[Any], Any]
    copied: tuple[int, ...]  # the part's shape


# Far more than a GPU's caches hold: every other row of each of 512 planes, and rows that become columns.
COPIES: Final = {
    "strided.rows": Copy((512, 512, 512), "float32", lambda x: x[:, ::2], (512, 256, 512)),
    "transposed.float32": Copy((16384, 8192), "float32", lambda x: x.T, (8192, 16384)),
    "transposed.float64": Copy((16384, 8192), "float64", lambda x: x.T, (8192, 16384)),
}


def repeated(copy: Callable[[], object], wait: Callable[[], object]) -> Iterator[Case]:
    """Copy again and again, and wait for the end of the last."""

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            copy()
        wait()

    yield Timed(batch, calls=CALLS)


def ours(each: Copy) -> Iterator[Case]:
    """Copy the part."""
    stream, src = ab.Stream(DEVICE), each.part(ab.zeros(each.shape, each.dtype, device=DEVICE))
    dst = ab.empty(each.copied, each.dtype, device=DEVICE)
    yield from repeated(lambda: ab.copy(dst, src, stream=stream), stream.synchronize)


def contiguous(each: Copy) -> Iterator[Case]:
    """Copy as many bytes that lie together."""
    yield from ours(each._replace(shape=each.copied, part=lambda x: x))


def register(name: str, set_up: Callable[..., Iterator[Case]], *packages: str) -> None:
    """Add an implementation of all copies, which is given the packages after the copy."""

    def add(identifier: str, each: Copy) -> None:
        def one(*found: Any) -> Iterator[Case]:
            yield from set_up(each, *found)

        one.__doc__ = set_up.__doc__
        implementation(name)(PREFIX + identifier)(guarded(one, *packages))

    for identifier, each in COPIES.items():
        add(identifier, each)


register(OURS, ours)
register("contiguous", contiguous)
