"""cuda.core, NVIDIA's own Python on the driver API."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from gpu import BLOCK, CHUNK, CHUNK_BLOCKS, KERNEL, LANES, PAGE, PTX, THREADS, on_gpu, pipeline_case
from harness import Case, Timed, in_threads, repeat

twin = on_gpu("cuda.core", "cuda.core", "numpy")

PAGE_BYTES = 4 * PAGE


def start(core: Any) -> Any:
    device = core.Device(0)
    device.set_current()
    return device


def kernel_of(core: Any) -> Any:
    return core.ObjectCode.from_ptx(PTX.read_bytes()).get_kernel(KERNEL)


@twin("launch.4args")
def four_arguments(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream, kernel, config = device.create_stream(), kernel_of(core), core.LaunchConfig(grid=1, block=BLOCK)
    x, y, z = (device.allocate(PAGE_BYTES, stream=stream) for _ in range(3))
    alpha = numpy.float32(2)

    def batch(calls: int) -> None:
        launch = core.launch
        for _ in repeat(calls):
            launch(stream, config, kernel, x, y, z, alpha)

    yield Timed(batch, stream.sync)


@twin("launch.threads8")
def threads(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    kernel, config, alpha = kernel_of(core), core.LaunchConfig(grid=1, block=BLOCK), numpy.float32(2)
    streams = [device.create_stream() for _ in range(THREADS)]

    def body_of(stream: Any) -> Any:
        core.Device(0).set_current()
        x, y, z = (device.allocate(PAGE_BYTES, stream=stream) for _ in range(3))

        def body(calls: int) -> None:
            launch = core.launch
            for _ in repeat(calls):
                launch(stream, config, kernel, x, y, z, alpha)

        return body

    def drain() -> None:
        for stream in streams:
            stream.sync()

    yield from in_threads([partial(body_of, stream) for stream in streams], drain)


@twin("event.record")
def record(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream, event = device.create_stream(), device.create_event()

    def batch(calls: int) -> None:
        record = stream.record
        for _ in repeat(calls):
            record(event)

    yield Timed(batch, stream.sync)


@twin("event.record_wait")
def record_wait(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    streams = device.create_stream(), device.create_stream()

    def batch(calls: int) -> None:
        first, second = streams
        for _ in repeat(calls):
            second.wait(first)
            first, second = second, first

    yield Timed(batch, device.sync)


@twin("event.query")
def query(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream, event = device.create_stream(), device.create_event()
    stream.record(event)
    stream.sync()

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            event.is_done  # noqa: B018  asking is what is timed

    yield Timed(batch)


@twin("event.elapsed_time")
def elapsed_time(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream = device.create_stream()
    timed = core.EventOptions(timing_enabled=True)
    begin, end = stream.record(options=timed), stream.record(options=timed)
    stream.sync()

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            end - begin

    yield Timed(batch)


@twin("event.create_destroy")
def event_create_destroy(core: Any, numpy: Any) -> Iterator[Case]:
    make = start(core).create_event

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            make()

    yield Timed(batch)


@twin("event.create_record_destroy")
def event_create_record_destroy(core: Any, numpy: Any) -> Iterator[Case]:
    stream = start(core).create_stream()

    def batch(calls: int) -> None:
        record = stream.record
        for _ in repeat(calls):
            record()

    yield Timed(batch, stream.sync)


@twin("stream.create_destroy")
def stream_create_destroy(core: Any, numpy: Any) -> Iterator[Case]:
    make = start(core).create_stream

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            make()

    yield Timed(batch)


@twin("stream.synchronize_idle")
def synchronize_idle(core: Any, numpy: Any) -> Iterator[Case]:
    stream = start(core).create_stream()

    def batch(calls: int) -> None:
        synchronize = stream.sync
        for _ in repeat(calls):
            synchronize()

    yield Timed(batch)


@twin("memory.alloc_free_4k")
def alloc_free(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream = device.create_stream()

    def batch(calls: int) -> None:
        allocate = device.allocate
        for _ in repeat(calls):
            allocate(PAGE_BYTES, stream=stream)

    yield Timed(batch, stream.sync)


@twin("memory.zeros_free_4k")
def zeros_free(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    stream = device.create_stream()

    def batch(calls: int) -> None:
        allocate = device.allocate
        for _ in repeat(calls):
            allocate(PAGE_BYTES, stream=stream).fill(0, stream=stream)

    yield Timed(batch, stream.sync)


def copies(device: Any, src: Any) -> Iterator[Case]:
    stream = device.create_stream()
    dst = device.allocate(PAGE_BYTES, stream=stream)

    def batch(calls: int) -> None:
        copy = dst.copy_from
        for _ in repeat(calls):
            copy(src, stream=stream)

    yield Timed(batch, stream.sync)


@twin("copy.pinned_4k")
def copy_pinned(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    yield from copies(device, core.LegacyPinnedMemoryResource().allocate(PAGE_BYTES))


@twin("copy.device_4k")
def copy_device(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    src = device.allocate(PAGE_BYTES, stream=device.create_stream())
    device.sync()
    yield from copies(device, src)


@twin("pipeline.overlap")
def pipeline(core: Any, numpy: Any) -> Iterator[Case]:
    device = start(core)
    kernel, config = kernel_of(core), core.LaunchConfig(grid=CHUNK_BLOCKS, block=BLOCK)
    alpha, pinned = numpy.float32(0.5), core.LegacyPinnedMemoryResource()

    def make_lane(stream: Any) -> SimpleNamespace:
        return SimpleNamespace(
            stream=stream,
            arriving=pinned.allocate(4 * CHUNK),
            leaving=pinned.allocate(4 * CHUNK),
            x=device.allocate(4 * CHUNK, stream=stream),
            z=device.allocate(4 * CHUNK, stream=stream),
        )

    def push(lane: SimpleNamespace) -> None:
        lane.x.copy_from(lane.arriving, stream=lane.stream)
        core.launch(lane.stream, config, kernel, lane.x, lane.x, lane.z, alpha)
        lane.leaving.copy_from(lane.z, stream=lane.stream)

    lanes = [make_lane(device.create_stream()) for _ in range(LANES)]
    yield pipeline_case(push, lanes, lambda lane: lane.stream.sync())
