"""What order between accesses costs: kept track of, added, looked for. Each value is a difference or a ratio of times
that were taken in turn.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

from harness import OURS, Case, Counted, implementation, repeat

import anabranch as ab

ours = implementation(OURS)

CALLS = 200
ROUNDS = 41

Batch = Callable[[], object]


@ab.kernel
def scaled_sum(i, alpha, x: ab.In, y: ab.In, z: ab.Out):
    z[i] = alpha * x[i] + y[i]


def times(streams: list[ab.Stream], batches: list[Batch], rounds: int) -> list[float]:
    """The median time of each batch, per call, with the streams held meanwhile, so that only enqueueing counts."""
    taken: list[list[float]] = [[] for _ in batches]
    for _ in repeat(rounds + 1):
        for batch, values in zip(batches, taken, strict=True):
            with contextlib.ExitStack() as gates:
                for stream in streams:
                    gates.enter_context(ab.testing.Gate(stream))
                begin = time.perf_counter_ns()
                batch()
                values.append((time.perf_counter_ns() - begin) / CALLS)
            for stream in streams:
                stream.synchronize()
    return [statistics.median(values[1:]) for values in taken]


def launches(mode: str, stream: ab.Stream, arrays: list[ab.Array]) -> Batch:
    def batch() -> None:
        with ab.hazards(mode):
            launch, kernel = ab.launch, scaled_sum
            x, y, z = arrays
            for _ in repeat(CALLS):
                launch(kernel, 1, 2.0, x, y, z, stream=stream)

    return batch


def extra(mode: str) -> Callable[[int], float]:
    def measure(rounds: int) -> float:
        stream = ab.Stream("cpu")
        arrays = [ab.zeros(1, device="cpu", stream=stream) for _ in range(3)]
        stream.synchronize()
        off, on = times([stream], [launches("off", stream, arrays), launches(mode, stream, arrays)], rounds)
        return on - off

    return measure


@ours("hazard.auto_extra")
def auto_extra() -> Iterator[Case]:
    """How much longer a launch with three arrays takes on one stream under "auto" than under "off"."""
    yield Counted(extra("auto"), ROUNDS, "ns", warms_up=True)


@ours("hazard.check_extra")
def check_extra() -> Iterator[Case]:
    """The same under "check"."""
    yield Counted(extra("check"), ROUNDS, "ns", warms_up=True)


@ours("hazard.needed_wait")
def needed_wait() -> Iterator[Case]:
    """A wait that is added, as so many times an event recorded and waited for by hand in the same mode: what either
    adds to a fill that needs neither.
    """

    def measure(rounds: int) -> float:
        pair = [ab.Stream("cpu"), ab.Stream("cpu")]
        array = ab.zeros(1, device="cpu", stream=pair[0])
        event = ab.Event(device="cpu")
        ab.synchronize("cpu")

        def alone() -> None:
            fill, one = ab.fill, pair[0]
            for _ in repeat(CALLS):
                fill(array, 0, stream=one)

        def added() -> None:
            fill, (one, other) = ab.fill, pair
            for _ in repeat(CALLS):
                one, other = other, one
                fill(array, 0, stream=one)

        def by_hand() -> None:
            fill, record, wait, (one, other) = ab.fill, event.record, event.wait, pair
            for _ in repeat(CALLS):
                one, other = other, one
                record(other)
                wait(one)
                fill(array, 0, stream=one)

        bare, *both = times(pair[:1], [alone, added, by_hand], rounds)
        return (both[0] - bare) / (both[1] - bare)

    yield Counted(measure, ROUNDS, "times", warms_up=True)
