"""Events."""

from collections.abc import Iterator

from harness import OURS, Case, Counted, Timed, implementation, in_fresh_process, repeat

import anabranch as ab

ours = implementation(OURS)


@ours("event.record")
def record() -> Iterator[Case]:
    """Record one event again and again."""
    stream, event = ab.Stream("cpu"), ab.Event(device="cpu")

    def batch(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield Timed(batch, stream.synchronize)


@ours("event.record_timing")
def record_timing() -> Iterator[Case]:
    """The same with an event that notes the time."""
    stream, event = ab.Stream("cpu"), ab.Event(enable_timing=True, device="cpu")

    def batch(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield Timed(batch, stream.synchronize)


@ours("event.record_wait")
def record_wait() -> Iterator[Case]:
    """`wait_stream`: one stream waits for all that another has to do, here nothing."""
    first, second = ab.Stream("cpu"), ab.Stream("cpu")

    def batch(calls: int) -> None:
        wait = second.wait_stream
        for _ in repeat(calls):
            wait(first)

    yield Timed(batch, second.synchronize)


@ours("event.record_wait_pending")
def record_wait_pending() -> Iterator[Case]:
    """`wait_stream` on a stream that has something to do."""
    first, second = ab.Stream("cpu"), ab.Stream("cpu")
    gates = [ab.testing.Gate(first)]

    def batch(calls: int) -> None:
        wait = second.wait_stream
        for _ in repeat(calls):
            wait(first)

    def drain() -> None:
        gates.pop().open()
        second.synchronize()
        gates.append(ab.testing.Gate(first))

    yield Timed(batch, drain)
    gates.pop().open()


@ours("event.query")
def query() -> Iterator[Case]:
    """Ask an event that is complete."""
    stream, event = ab.Stream("cpu"), ab.Event(device="cpu")
    event.record(stream)

    def batch(calls: int) -> None:
        query = event.query
        for _ in repeat(calls):
            query()

    yield Timed(batch)


@ours("event.elapsed_time")
def elapsed_time() -> Iterator[Case]:
    """Ask for the time between two events that are complete."""
    stream, begin, end = ab.Stream("cpu"), *(ab.Event(enable_timing=True, device="cpu") for _ in range(2))
    begin.record(stream)
    end.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        elapsed_time = begin.elapsed_time
        for _ in repeat(calls):
            elapsed_time(end)

    yield Timed(batch)


@ours("event.create_destroy")
def create_destroy() -> Iterator[Case]:
    """Make an event and drop it."""

    def batch(calls: int) -> None:
        make = ab.Event
        for _ in repeat(calls):
            make()

    with ab.Device("cpu"):
        yield Timed(batch)


GROWTH = """
import sys
import anabranch as ab
from harness import resident_bytes

stream = ab.Stream("cpu")

def record(count):
    for _ in range(count):
        stream.record_event()
    stream.synchronize()

record(10_000)
before = resident_bytes()
record(int(sys.argv[1]))
print(resident_bytes() - before)
"""


@ours("event.million_growth")
def million_growth() -> Iterator[Case]:
    """What the process has grown by after 1 000 000 events were recorded and dropped."""
    yield Counted(lambda count: float(in_fresh_process(GROWTH, count)), 1_000_000, "B")
