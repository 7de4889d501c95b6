"""Enqueuing from several threads at the same time. Without the interpreter lock it costs each what it costs one."""

import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from bench_cuda import module_kernel
from gpu import BLOCK, DEVICE, PAGE, THREADS, on_gpu
from harness import OURS, Case, implementation, in_threads, repeat

import anabranch as ab


def launches(kernel: Any, dim: Any, arguments: Callable[[list[ab.Array]], tuple[Any, ...]]) -> Any:
    """Return a function that makes a thread's body: so many launches on a stream of its own, with its own arrays."""

    def body_of(stream: ab.Stream, arrays: list[ab.Array]) -> Callable[[int], None]:
        given = arguments(arrays)

        def body(calls: int) -> None:
            with stream:
                launch = ab.launch
                for _ in repeat(calls):
                    launch(kernel, dim, *given)

        return body

    return body_of


def on_cuda(threads: int) -> Iterator[Case]:
    streams = [ab.Stream(DEVICE) for _ in repeat(threads)]
    body_of = launches(module_kernel(), ab.LaunchConfig(1, BLOCK), lambda arrays: (*arrays, 2.0))

    def drain() -> None:
        for stream in streams:
            stream.synchronize()

    bodies = [body_of(stream, [ab.zeros(PAGE, stream=stream) for _ in range(3)]) for stream in streams]
    yield from in_threads(bodies, drain)


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
nothing.compile_cpu = lambda signature: SimpleNamespace(
    address=ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value, keepalive=None
)


def on_cpu(threads: int) -> Iterator[Case]:
    """The same on a CPU device, behind something that has not happened yet, so that no worker takes part."""
    streams = [ab.Stream("cpu") for _ in repeat(threads)]
    gates = [ab.testing.Gate(stream) for stream in streams]
    body_of = launches(nothing, 1, lambda arrays: (2.0, *arrays))

    def drain() -> None:
        for gate in gates:
            gate.open()
        for stream in streams:
            stream.synchronize()
        gates[:] = [ab.testing.Gate(stream) for stream in streams]

    bodies = [body_of(stream, [ab.zeros(1, device="cpu", stream=stream) for _ in range(3)]) for stream in streams]
    try:
        yield from in_threads(bodies, drain)
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
