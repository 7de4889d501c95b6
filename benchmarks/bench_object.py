"""What an object takes up in memory, its part in the core included."""

from collections.abc import Iterator

from harness import OURS, Case, Counted, implementation, in_fresh_process

ours = implementation(OURS)

# The list is there before, and a few objects, so that neither it nor what the first ones set up counts.
SIZE = """
import sys
import anabranch as ab
from harness import resident_bytes

array = ab.empty(1, device="cpu")

def make():
    return {expression}

count = int(sys.argv[1])
first = [make() for _ in range(100)]
kept = [None] * count
before = resident_bytes()
for i in range(count):
    kept[i] = make()
print((resident_bytes() - before) / count)
"""


def size(expression: str) -> Case:
    return Counted(lambda count: float(in_fresh_process(SIZE.format(expression=expression), count)), 100_000, "B")


@ours("object.stream_bytes")
def stream() -> Iterator[Case]:
    """A stream."""
    yield size("ab.Stream('cpu')")


@ours("object.event_bytes")
def event() -> Iterator[Case]:
    """An event that was recorded."""
    yield size("ab.default_stream('cpu').record_event()")


@ours("object.array_bytes")
def array() -> Iterator[Case]:
    """An array of one element, with its block of memory, never used."""
    yield size("ab.empty(1, device='cpu')")


@ours("object.view_bytes")
def view() -> Iterator[Case]:
    """A view of an array."""
    yield size("array[:]")
