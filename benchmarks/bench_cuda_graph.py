"""Graphs on the CUDA device, of the kernel that the twins launch. Every ID has a twin in C, which is the floor."""

from collections.abc import Iterator

from bench_cuda import module_kernel
from gpu import BLOCK, GRAPH_CALLS, GRAPH_ROUNDS, PAGE, on_gpu, streams
from harness import OURS, Case, Timed, repeat

import anabranch as ab

ours = on_gpu(OURS)


def replays(kernels: int, *, until_done: bool = False, **batches: int) -> Iterator[Case]:
    with streams()[0] as stream:
        kernel, config = module_kernel(), ab.LaunchConfig(1, BLOCK)
        x, y, z = (ab.zeros(PAGE) for _ in range(3))
        with ab.capture() as graph:
            for _ in repeat(kernels):
                ab.launch(kernel, config, x, y, z, 2.0)

        def batch(calls: int) -> None:
            launch = graph.launch
            for _ in repeat(calls):
                launch()
            if until_done:
                stream.synchronize()

        yield Timed(batch, stream.synchronize, **batches)


@ours("graph.replay10")
def replay_few() -> Iterator[Case]:
    """Replay a graph of ten kernels, each after the one before."""
    return replays(10)


@ours("graph.replay1000")
def replay_many() -> Iterator[Case]:
    """The same with 1000 kernels, until the last has run: what the host adds to a graph that takes the GPU longer."""
    return replays(1000, until_done=True, calls=GRAPH_CALLS, rounds=GRAPH_ROUNDS)


@ours("graph.update10")
def update() -> Iterator[Case]:
    """Call a captured function of ten kernels with another number each time: all ten get new arguments."""

    @ab.graphed
    def ten(alpha, x, y, z):
        for _ in repeat(10):
            ab.launch(kernel, config, x, y, z, alpha)

    with streams()[0] as stream:
        kernel, config = module_kernel(), ab.LaunchConfig(1, BLOCK)
        arrays = [ab.zeros(PAGE) for _ in range(3)]

        def batch(calls: int) -> None:
            for number in range(calls):
                ten(float(number), *arrays)

        yield Timed(batch, stream.synchronize)


def captures() -> Iterator[Case]:
    with streams()[0] as stream:
        kernel, config = module_kernel(), ab.LaunchConfig(1, BLOCK)
        x, y, z = (ab.zeros(PAGE) for _ in range(3))

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                with ab.capture():
                    launch = ab.launch
                    for _ in repeat(1000):
                        launch(kernel, config, x, y, z, 2.0)

        yield Timed(batch, stream.synchronize, calls=GRAPH_CALLS, rounds=GRAPH_ROUNDS)


@ours("graph.capture1000")
def capture() -> Iterator[Case]:
    """Capture 1000 launches, until the graph could be replayed."""
    return captures()


@ours("graph.record1000")
def record() -> Iterator[Case]:
    """The same against a twin that captures and instantiates nothing, which ours cannot leave out."""
    return captures()
