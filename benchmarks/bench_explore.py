"""Exploration of schedules: what an operation costs, with the calls of the program that enqueue it."""

import time
from collections.abc import Iterator

from harness import OURS, Case, Counted, implementation

import anabranch as ab

ours = implementation(OURS)

OPERATIONS = 100
STREAMS = 4


def fills() -> None:
    """Fill parts of an array that no two streams share: one class of schedules."""
    array = ab.zeros(STREAMS, device="cpu")
    ab.synchronize("cpu")
    streams = [ab.Stream("cpu") for _ in range(STREAMS)]
    parts = [array[number : number + 1] for number in range(STREAMS)]
    for number in range(OPERATIONS):
        ab.fill(parts[number % STREAMS], number, stream=streams[number % STREAMS])


def in_conflict() -> None:
    """Fill one array on two streams, a few times: some classes of schedules."""
    array = ab.zeros(1, device="cpu")
    ab.synchronize("cpu")
    streams = [ab.Stream("cpu") for _ in range(2)]
    for number in range(10):
        ab.fill(array, number, stream=streams[number % 2])


@ours("explore.operations")
def operations() -> Iterator[Case]:
    """The time of an operation: enqueued, chosen and run."""

    def measure(rounds: int) -> float:
        begin = time.perf_counter_ns()
        report = ab.testing.explore(fills, schedules=rounds)
        elapsed = time.perf_counter_ns() - begin
        assert report.ok, report
        return elapsed / (rounds * OPERATIONS)

    yield Counted(measure, 20, "ns", warms_up=True)


@ours("explore.classes")
def classes() -> Iterator[Case]:
    """The time of a run of ten operations in conflict with those of another stream, with what finds the next run."""

    def measure(rounds: int) -> float:
        with ab.hazards("off"):
            begin = time.perf_counter_ns()
            report = ab.testing.explore(in_conflict, limit=rounds)
            elapsed = time.perf_counter_ns() - begin
        assert report.ok, report
        return elapsed / report.runs

    yield Counted(measure, 200, "ns", warms_up=True)
