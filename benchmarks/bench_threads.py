"""Enqueuing from several threads at the same time. Without the interpreter lock it costs each what it costs one."""

import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from bench_cuda import module_kernel
from gpu import BLOCK, DEVICE, PAGE, THREADS, on_gpu
from harness import OURS, Case, implementation, in_threads, repeat

import anabranch as ab

# So many that it does not matter when the second thread comes to begin. No driver limits how many may wait.
CPU_CALLS = 20_000


def own_number() -> float:
    """Return a number that this thread has made: a constant's references are counted in one place for all threads."""
    return float("2")


def launches(kernel: Any, dim: Any, stream: ab.Stream, *args: Any) -> Callable[[int], None]:
    """Return a thread's body: so many launches with four arguments on its stream."""

    def body(calls: int) -> None:
        # Variables of its own: those of the function around it are locked at each use where no interpreter lock is.
        launch, what, over, (one, two, three, four) = ab.launch, kernel, dim, args
        with stream:
            for _ in repeat(calls):
                launch(what, over, one, two, three, four)

    return body


def on_cuda(threads: int) -> Iterator[Case]:
    kernel, streams = module_kernel(), []

    def make() -> Callable[[int], None]:
        stream = ab.Stream(DEVICE)
        streams.append(stream)
        arrays = [ab.zeros(PAGE, stream=stream) for _ in range(3)]
        return launches(kernel, ab.LaunchConfig(1, BLOCK), stream, *arrays, own_number())

    def drain() -> None:
        for stream in streams:
            stream.synchronize()

    yield from in_threads([make] * threads, drain)


@on_gpu(OURS)("launch.threads1")
def one_on_cuda() -> Iterator[Case]:
    """Launch a module's kernel with three arrays and a scalar, one block, from a thread with a stream of its own."""
    return on_cuda(1)


@on_gpu(OURS)("launch.threads2")
def two_on_cuda() -> Iterator[Case]:
    """The same from two threads: the time for both, divided by the launches of both."""
    return on_cuda(2)


@on_gpu(OURS)("launch.threads4")
def four_on_cuda() -> Iterator[Case]:
    """The same from four threads."""
    return on_cuda(4)


@on_gpu(OURS)("launch.threads8")
def eight_on_cuda() -> Iterator[Case]:
    """The same from eight threads."""
    return on_cuda(THREADS)


@ab.kernel
def nothing(i, alpha, x: ab.In, y: ab.In, z: ab.Out):
    pass


# In place of what Numba would make, which free-threaded Python may lack: a function that heeds no arguments.
nothing.compile_cpu = lambda signature, checked: SimpleNamespace(
    address=ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value, keepalive=None, places=(), block=()
)


def on_cpu(threads: int) -> Iterator[Case]:
    """The same on a CPU device, behind something that has not happened yet, so that no worker takes part."""
    gates = []

    def make() -> Callable[[int], None]:
        stream = ab.Stream("cpu")
        arrays = [ab.zeros(1, device="cpu", stream=stream) for _ in range(3)]
        gates.append(ab.testing.Gate(stream))
        return launches(nothing, 1, stream, own_number(), *arrays)

    def drain() -> None:
        streams = [gate.stream for gate in gates]
        for gate in gates:
            gate.open()
        for stream in streams:
            stream.synchronize()
        gates[:] = [ab.testing.Gate(stream) for stream in streams]

    try:
        yield from in_threads([make] * threads, drain, CPU_CALLS)
    finally:
        for gate in gates:
            gate.open()


@implementation(OURS)("threads.launch2")
def two_threads() -> Iterator[Case]:
    """Enqueue a kernel with four arguments from two threads: half the time of one, where nothing holds them up."""
    return on_cpu(2)


@implementation("one thread")("threads.launch2")
def one_thread() -> Iterator[Case]:
    """The same from one thread."""
    return on_cpu(1)
