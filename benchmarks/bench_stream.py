"""Streams and the current stream."""

from collections.abc import Iterator

from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)


@ours("stream.create_destroy")
def create_destroy() -> Iterator[Case]:
    """Make a stream and drop it."""

    def batch(calls: int) -> None:
        make = ab.Stream
        for _ in repeat(calls):
            make()

    with ab.Device("cpu"):
        yield Timed(batch)


@ours("stream.with")
def scope() -> Iterator[Case]:
    """Enter and leave `with stream`."""
    stream = ab.Stream("cpu")

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            with stream:
                pass

    yield Timed(batch)


@ours("stream.current")
def current() -> Iterator[Case]:
    """Ask for the current stream."""

    def batch(calls: int) -> None:
        current = ab.current_stream
        for _ in repeat(calls):
            current()

    with ab.Stream("cpu"):
        yield Timed(batch, calls=1000)


@ours("stream.synchronize_idle")
def synchronize_idle() -> Iterator[Case]:
    """Wait for a stream with nothing to do."""
    stream = ab.Stream("cpu")

    def batch(calls: int) -> None:
        synchronize = stream.synchronize
        for _ in repeat(calls):
            synchronize()

    yield Timed(batch)
