"""The CUDA device. Every ID has a twin in C, which is the floor."""

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from gpu import BLOCK, CHUNK, CHUNK_BLOCKS, DEVICE, KERNEL, LANES, PAGE, PTX, on_gpu, pipeline_case, streams
from harness import OURS, Case, Timed, in_threads, repeat

import anabranch as ab

ours = on_gpu(OURS)


@ab.kernel
def scaled_sum(i, alpha, x: ab.In, y: ab.In, z: ab.Out):
    z[i] = alpha * x[i] + y[i]


@functools.cache
def module_kernel() -> Any:
    return ab.Module(PTX.read_bytes()).get_kernel(KERNEL, access=("in", "in", "out"))


@ours("launch.4args")
def four_arguments() -> Iterator[Case]:
    """Launch a kernel of a module with three arrays and a scalar, one block, on the current stream."""
    with streams()[0] as stream:
        kernel, config = module_kernel(), ab.LaunchConfig(1, BLOCK)
        x, y, z = (ab.zeros(PAGE) for _ in range(3))

        def batch(calls: int) -> None:
            launch = ab.launch
            for _ in repeat(calls):
                launch(kernel, config, x, y, z, 2.0)

        yield Timed(batch, stream.synchronize)


@ours("launch.kernel4")
def python_kernel() -> Iterator[Case]:
    """The same with a kernel written in Python."""
    with streams()[0] as stream:
        x, y, z = (ab.zeros(PAGE) for _ in range(3))

        def batch(calls: int) -> None:
            launch, kernel = ab.launch, scaled_sum
            for _ in repeat(calls):
                launch(kernel, BLOCK, 2.0, x, y, z)

        yield Timed(batch, stream.synchronize)


@ours("event.record")
def record() -> Iterator[Case]:
    """Record one event again and again."""
    stream, event = streams()[0], ab.Event(device=DEVICE)

    def batch(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield Timed(batch, stream.synchronize)


@ours("event.record_own_thread")
def record_own_thread() -> Iterator[Case]:
    """The same in a thread that nothing else uses, so that no other library has left its context current there."""
    stream, event = streams()[0], ab.Event(device=DEVICE)

    def body(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield from in_threads([lambda: body], stream.synchronize)


@ours("event.record_wait")
def record_wait() -> Iterator[Case]:
    """`wait_stream`: two streams wait for each other in turn, so that every wait is for something new."""
    first, second = streams()

    def batch(calls: int) -> None:
        waits = first.wait_stream, second.wait_stream
        for _ in repeat(calls // 2):
            waits[1](first)
            waits[0](second)
        if calls % 2:
            waits[1](first)

    def drain() -> None:
        first.synchronize()
        second.synchronize()

    yield Timed(batch, drain)


@ours("event.query")
def query() -> Iterator[Case]:
    """Ask an event that is complete."""
    stream, event = streams()[0], ab.Event(device=DEVICE)
    event.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        query = event.query
        for _ in repeat(calls):
            query()

    yield Timed(batch)


@ours("event.elapsed_time")
def elapsed_time() -> Iterator[Case]:
    """Ask for the time between two events that are complete."""
    stream, begin, end = streams()[0], *(ab.Event(enable_timing=True, device=DEVICE) for _ in range(2))
    begin.record(stream)
    end.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        elapsed_time = begin.elapsed_time
        for _ in repeat(calls):
            elapsed_time(end)

    yield Timed(batch)


@ours("event.create_destroy")
def event_create_destroy() -> Iterator[Case]:
    """Make an event and drop it."""

    def batch(calls: int) -> None:
        make = ab.Event
        for _ in repeat(calls):
            make()

    with ab.Device(DEVICE):
        yield Timed(batch)


@ours("event.create_record_destroy")
def event_create_record_destroy() -> Iterator[Case]:
    """Make an event, record it and drop it."""

    def batch(calls: int) -> None:
        make = ab.Event
        for _ in repeat(calls):
            make().record(stream)

    with streams()[0] as stream:
        yield Timed(batch, stream.synchronize)


@ours("stream.create_destroy")
def stream_create_destroy() -> Iterator[Case]:
    """Make a stream and drop it."""

    def batch(calls: int) -> None:
        make = ab.Stream
        for _ in repeat(calls):
            make()

    with ab.Device(DEVICE):
        yield Timed(batch)


@ours("stream.with")
def scope() -> Iterator[Case]:
    """Enter and leave `with stream`."""
    stream = streams()[0]

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

    with ab.Stream(DEVICE):
        yield Timed(batch, calls=1000)


@ours("stream.synchronize_idle")
def synchronize_idle() -> Iterator[Case]:
    """Wait for a stream with nothing to do."""
    stream = streams()[0]

    def batch(calls: int) -> None:
        synchronize = stream.synchronize
        for _ in repeat(calls):
            synchronize()

    yield Timed(batch)


@ours("memory.alloc_free_4k")
def alloc_free() -> Iterator[Case]:
    """Make an array of 4 KiB whose elements are not set, and drop it."""

    def batch(calls: int) -> None:
        make = ab.empty
        for _ in repeat(calls):
            make(PAGE)

    with streams()[0] as stream:
        yield Timed(batch, stream.synchronize)


@ours("memory.zeros_free_4k")
def zeros_free() -> Iterator[Case]:
    """Make an array of 4 KiB of zeros, and drop it."""

    def batch(calls: int) -> None:
        make = ab.zeros
        for _ in repeat(calls):
            make(PAGE)

    with streams()[0] as stream:
        yield Timed(batch, stream.synchronize)


@ours("copy.pinned_4k")
def copy_pinned() -> Iterator[Case]:
    """Copy 4 KiB from pinned memory."""
    src = ab.zeros(PAGE, device="cpu", pinned=True)
    ab.synchronize("cpu")
    yield from copies(src)


@ours("copy.device_4k")
def copy_device() -> Iterator[Case]:
    """Copy 4 KiB on the device."""
    src = ab.zeros(PAGE, device=DEVICE)
    ab.synchronize(DEVICE)
    yield from copies(src)


def copies(src: ab.Array) -> Iterator[Case]:
    with streams()[0] as stream:
        dst = ab.zeros(PAGE)

        def batch(calls: int) -> None:
            copy = ab.copy
            for _ in repeat(calls):
                copy(dst, src)

        yield Timed(batch, stream.synchronize)


@ours("pipeline.overlap")
def pipeline() -> Iterator[Case]:
    """Copy 64 MiB to the device, compute, and copy back, chunk after chunk over three streams; per chunk."""
    kernel, config = module_kernel(), ab.LaunchConfig(CHUNK_BLOCKS, BLOCK)

    def make_lane(stream: ab.Stream) -> SimpleNamespace:
        return SimpleNamespace(
            stream=stream,
            arriving=ab.full(CHUNK, 2.0, "float32", device="cpu", pinned=True),
            leaving=ab.zeros(CHUNK, device="cpu", pinned=True),
            x=ab.empty(CHUNK, stream=stream),
            z=ab.empty(CHUNK, stream=stream),
        )

    def push(lane: SimpleNamespace) -> None:
        with lane.stream:
            ab.copy(lane.x, lane.arriving)
            ab.launch(kernel, config, lane.x, lane.x, lane.z, 0.5)
            ab.copy(lane.leaving, lane.z)

    lanes = [make_lane(ab.Stream(DEVICE)) for _ in range(LANES)]
    ab.synchronize()
    yield pipeline_case(push, lanes, lambda lane: lane.stream.synchronize())
    for lane in lanes:
        result = lane.leaving.numpy()
        if result[0] != 3 or result[-1] != 3:
            raise RuntimeError(f"the pipeline computed {result[0]} and {result[-1]} instead of 3")
