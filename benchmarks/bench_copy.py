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


# Large enough for no cache to hold both sides.
ROWS, COLUMNS = 4096, 2048


def large(dst: ab.Array, src: ab.Array) -> Iterator[Case]:
    """Copy, and wait for the end of it each time: what counts is how long the copy takes."""
    with ab.Stream(dst.device) as stream:

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                ab.copy(dst, src)
                stream.synchronize()

        yield Timed(batch, calls=3, rounds=15)


@ours("copy.strided.rows")
def strided_rows() -> Iterator[Case]:
    """Copy every other row of 2048 float32."""
    yield from large(ab.zeros((ROWS // 2, COLUMNS), device="cpu"), ab.zeros((ROWS, COLUMNS), device="cpu")[::2])


@ours("copy.strided.elements")
def strided_elements() -> Iterator[Case]:
    """Copy every other element."""
    yield from large(ab.zeros((ROWS, COLUMNS // 2), device="cpu"), ab.zeros((ROWS, COLUMNS), device="cpu")[:, ::2])


@ours("copy.transposed.float32")
def transposed() -> Iterator[Case]:
    """Copy 4096 rows of 2048 float32 to as many columns."""
    yield from large(ab.zeros((COLUMNS, ROWS), device="cpu"), ab.zeros((ROWS, COLUMNS), device="cpu").T)


@ours("copy.transposed.float64")
def transposed_wide() -> Iterator[Case]:
    """The same of float64."""
    shape = (ROWS, COLUMNS)
    yield from large(ab.zeros(shape[::-1], "float64", device="cpu"), ab.zeros(shape, "float64", device="cpu").T)
