"""Launching kernels, and host functions in stream order."""

from collections.abc import Iterator

from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)


@ab.kernel
def empty(i):
    pass


@ab.kernel
def scaled_sum(i, alpha, x: ab.In, y: ab.In, z: ab.Out):
    z[i] = alpha * x[i] + y[i]


@ab.kernel
def increment(i, y: ab.InOut):
    y[i] += 1


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


def noop() -> None:
    pass


@ours("launch.enqueue_empty")
def enqueue_empty() -> Iterator[Case]:
    """Enqueue a kernel that does nothing, while the workers run those before."""
    stream = ab.Stream("cpu")

    def batch(calls: int) -> None:
        launch, kernel = ab.launch, empty
        for _ in repeat(calls):
            launch(kernel, 1, stream=stream)

    yield Timed(batch, stream.synchronize)


@ours("launch.4args")
def four_arguments() -> Iterator[Case]:
    """Enqueue a kernel of one index with three arrays and a scalar on the current stream."""
    with ab.Stream("cpu") as stream:
        x, y, z = (ab.zeros(1) for _ in range(3))

        def batch(calls: int) -> None:
            launch, kernel = ab.launch, scaled_sum
            for _ in repeat(calls):
                launch(kernel, 1, 2.0, x, y, z)

        yield Timed(batch, stream.synchronize)


@ours("launch.4args_held")
def four_arguments_held() -> Iterator[Case]:
    """The same behind something that has not happened yet, so that no worker takes part."""
    with ab.Stream("cpu") as stream:
        x, y, z = (ab.zeros(1) for _ in range(3))
        gates = [ab.testing.Gate(stream)]

        def batch(calls: int) -> None:
            launch, kernel = ab.launch, scaled_sum
            for _ in repeat(calls):
                launch(kernel, 1, 2.0, x, y, z)

        def drain() -> None:
            gates.pop().open()
            stream.synchronize()
            gates.append(ab.testing.Gate(stream))

        yield Timed(batch, drain)
        gates.pop().open()


@ours("launch.4args_checked")
def four_arguments_checked() -> Iterator[Case]:
    """The same under "check", from one line."""
    with ab.hazards("check"):
        yield from four_arguments_held()


@ours("launch.chain1000")
def chain() -> Iterator[Case]:
    """1000 kernels of one index, each after the one before, until the last has run; per kernel."""
    stream = ab.Stream("cpu")
    y = ab.zeros(1, "int64", stream=stream)
    expected = 0

    def batch(calls: int) -> None:
        nonlocal expected
        launch, kernel = ab.launch, increment
        for _ in repeat(calls):
            launch(kernel, 1, y, stream=stream)
        stream.synchronize()
        expected += calls

    yield Timed(batch, calls=1000)
    if y.numpy()[0] != expected:
        raise RuntimeError(f"{expected} kernels have run as {y.numpy()[0]}")


SAXPY_SIZE = 2**25  # 128 MiB per array, four times the last cache of the machines these run on


@ours("kernel.saxpy_memory_bound")
def memory_bound() -> Iterator[Case]:
    """y = a x + y over 2**25 float32, from the launch to its end."""
    stream = ab.Stream("cpu")
    x, y = (ab.ones(SAXPY_SIZE, stream=stream) for _ in range(2))

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            ab.launch(saxpy, SAXPY_SIZE, 0.5, x, y, stream=stream)
            stream.synchronize()

    yield Timed(batch, calls=1, rounds=31)


@ours("submit.noop")
def submit() -> Iterator[Case]:
    """Enqueue a Python function that does nothing."""
    stream = ab.Stream("cpu")

    def batch(calls: int) -> None:
        enqueue, function = stream.submit, noop
        for _ in repeat(calls):
            enqueue(function)

    yield Timed(batch, stream.synchronize)
