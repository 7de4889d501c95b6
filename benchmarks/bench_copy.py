"""Copies and fills."""

from collections.abc import Iterator

from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)


@ours("copy.4k")
def copy() -> Iterator[Case]:
    """Copy 4 KiB from one array to another."""
    with ab.Stream("cpu") as stream:
        dst, src = ab.zeros(1024), ab.zeros(1024)

        def batch(calls: int) -> None:
            copy = ab.copy
            for _ in repeat(calls):
                copy(dst, src)

        yield Timed(batch, stream.synchronize)


@ours("copy.4k_held")
def copy_held() -> Iterator[Case]:
    """The same behind something that has not happened yet, so that no worker takes part."""
    with ab.Stream("cpu") as stream:
        dst, src = ab.zeros(1024), ab.zeros(1024)
        gates = [ab.testing.Gate(stream)]

        def batch(calls: int) -> None:
            copy = ab.copy
            for _ in repeat(calls):
                copy(dst, src)

        def drain() -> None:
            gates.pop().open()
            stream.synchronize()
            gates.append(ab.testing.Gate(stream))

        yield Timed(batch, drain)
        gates.pop().open()


@ours("copy.fill_4k")
def fill() -> Iterator[Case]:
    """Fill 4 KiB."""
    with ab.Stream("cpu") as stream:
        dst = ab.zeros(1024)

        def batch(calls: int) -> None:
            fill = ab.fill
            for _ in repeat(calls):
                fill(dst, 1)

        yield Timed(batch, stream.synchronize)
