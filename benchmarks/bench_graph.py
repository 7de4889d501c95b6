"""Replays of graphs on the CPU device. A node is a kernel of one index that does nothing."""

import statistics
import time
from collections.abc import Iterator

from harness import OURS, Case, Counted, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)

NODES = 1000


@ab.kernel
def empty(i):
    pass


@ab.kernel
def increment(i, y: ab.InOut):
    y[i] += 1


def captured(stream: ab.Stream, nodes: int) -> ab.Graph:
    with ab.capture(stream) as graph:
        for _ in repeat(nodes):
            ab.launch(empty, 1)
    return graph


@ours("graph.node")
def node() -> Iterator[Case]:
    """A chain of 1000 kernels replayed, from the launch to its end, per kernel."""
    stream = ab.Stream("cpu")
    graph = captured(stream, NODES)

    def measure(rounds: int) -> float:
        times = []
        for _ in repeat(rounds):
            begin = time.perf_counter_ns()
            graph.launch(stream)
            stream.synchronize()
            times.append((time.perf_counter_ns() - begin) / NODES)
        return statistics.median(times)

    yield Counted(measure, 101, "ns", warms_up=True)


@ours("graph.node_enqueued")
def against_enqueued() -> Iterator[Case]:
    """The same, as so many times the kernels launched one by one, until the last has run."""
    stream = ab.Stream("cpu")
    graph = captured(stream, NODES)

    def eager() -> None:
        launch, kernel = ab.launch, empty
        for _ in repeat(NODES):
            launch(kernel, 1, stream=stream)

    def replayed() -> None:
        graph.launch(stream)

    def measure(rounds: int) -> float:
        taken: list[list[int]] = [[], []]
        for _ in repeat(rounds):
            for work, times in zip((replayed, eager), taken, strict=True):
                begin = time.perf_counter_ns()
                work()
                stream.synchronize()
                times.append(time.perf_counter_ns() - begin)
        replay, enqueued = map(statistics.median, taken)
        return replay / enqueued

    yield Counted(measure, 41, "times", warms_up=True)


@ours("graph.launch10")
def launch() -> Iterator[Case]:
    """Enqueue a replay of ten kernels that write one array."""
    stream = ab.Stream("cpu")
    array = ab.zeros(1, stream=stream)
    with ab.capture(stream) as graph:
        for _ in repeat(10):
            ab.launch(increment, 1, array)

    def batch(calls: int) -> None:
        replay = graph.launch
        for _ in repeat(calls):
            replay(stream)

    yield Timed(batch, stream.synchronize)


@ours("graph.set_args")
def set_arguments() -> Iterator[Case]:
    """Give a launch other arguments. What a call left behind would add up over the batches."""
    stream = ab.Stream("cpu")
    arrays = [ab.zeros(1, stream=stream) for _ in range(2)]
    with ab.capture(stream) as graph:
        ab.launch(increment, 1, arrays[0])
    (node,) = graph.nodes

    def batch(calls: int) -> None:
        change = graph.set_args
        for number in range(calls):
            change(node, arrays[number & 1])

    yield Timed(batch)


@ours("graph.graphed10")
def call() -> Iterator[Case]:
    """Call a captured function of ten kernels with one of two arrays and another number each time."""
    arrays = [ab.zeros(1, device="cpu") for _ in range(2)]

    @ab.graphed
    def ten(array, number):
        for _ in repeat(10):
            ab.launch(add, 1, number, array)

    def batch(calls: int) -> None:
        for number in range(calls):
            ten(arrays[number & 1], number)

    with ab.Stream("cpu") as stream:
        yield Timed(batch, stream.synchronize)


@ab.kernel
def add(i, number, y: ab.InOut):
    y[i] += number


@ours("graph.capture1000")
def capture() -> Iterator[Case]:
    """Capture 1000 launches and make the graph ready, per launch."""
    stream = ab.Stream("cpu")

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            captured(stream, NODES)

    yield Timed(batch, calls=1)
