"""Stream-ordered memory."""

from collections.abc import Iterator

from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)


@ours("memory.alloc_free_4k")
def alloc_free() -> Iterator[Case]:
    """Make an array of 4 KiB whose elements are not set, and drop it."""

    def batch(calls: int) -> None:
        make = ab.empty
        for _ in repeat(calls):
            make(1024)

    with ab.Stream("cpu") as stream:
        yield Timed(batch, stream.synchronize)


@ours("memory.zeros_free_4k")
def zeros_free() -> Iterator[Case]:
    """Make an array of 4 KiB of zeros, and drop it."""

    def batch(calls: int) -> None:
        make = ab.zeros
        for _ in repeat(calls):
            make(1024)

    with ab.Stream("cpu") as stream:
        yield Timed(batch, stream.synchronize)
