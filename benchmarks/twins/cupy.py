"""CuPy."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from gpu import BLOCK, CHUNK, CHUNK_BLOCKS, KERNEL, LANES, PAGE, PTX, THREADS, on_gpu, pipeline_case
from harness import Case, Timed, in_threads, repeat

twin = on_gpu("cupy", "cupy", "numpy")


def make_stream(cupy: Any) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


def make_event(cupy: Any) -> Any:
    return cupy.cuda.Event(disable_timing=True)


def kernel_of(cupy: Any) -> Any:
    return cupy.RawModule(path=str(PTX)).get_function(KERNEL)


@twin("launch.4args")
def four_arguments(cupy: Any, numpy: Any) -> Iterator[Case]:
    kernel, grid, block, alpha = kernel_of(cupy), (1,), (BLOCK,), numpy.float32(2)
    with make_stream(cupy) as stream:
        x, y, z = (cupy.zeros(PAGE, "float32") for _ in range(3))

        def batch(calls: int) -> None:
            for _ in repeat(calls):
                kernel(grid, block, (x, y, z, alpha))

        yield Timed(batch, stream.synchronize)


@twin("launch.threads8")
def threads(cupy: Any, numpy: Any) -> Iterator[Case]:
    kernel, grid, block, alpha = kernel_of(cupy), (1,), (BLOCK,), numpy.float32(2)
    streams = [make_stream(cupy) for _ in range(THREADS)]

    def body_of(stream: Any) -> Any:
        with stream:
            x, y, z = (cupy.zeros(PAGE, "float32") for _ in range(3))

        def body(calls: int) -> None:
            with stream:
                for _ in repeat(calls):
                    kernel(grid, block, (x, y, z, alpha))

        return body

    def drain() -> None:
        for stream in streams:
            stream.synchronize()

    yield from in_threads([partial(body_of, stream) for stream in streams], drain)


@twin("event.record")
def record(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream, event = make_stream(cupy), make_event(cupy)

    def batch(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield Timed(batch, stream.synchronize)


@twin("event.record_wait")
def record_wait(cupy: Any, numpy: Any) -> Iterator[Case]:
    """It has no `wait_stream`: an event of each stream, recorded again and again."""
    sides = [(make_stream(cupy), make_event(cupy)) for _ in range(2)]

    def batch(calls: int) -> None:
        (first, event), (second, other) = sides
        for _ in repeat(calls):
            event.record(first)
            second.wait_event(event)
            first, event, second, other = second, other, first, event

    def drain() -> None:
        for stream, _ in sides:
            stream.synchronize()

    yield Timed(batch, drain)


@twin("event.query")
def query(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream, event = make_stream(cupy), make_event(cupy)
    event.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            event.done  # noqa: B018  asking is what is timed

    yield Timed(batch)


@twin("event.elapsed_time")
def elapsed_time(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream, begin, end = make_stream(cupy), cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(stream)
    end.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        elapsed_time = cupy.cuda.get_elapsed_time
        for _ in repeat(calls):
            elapsed_time(begin, end)

    yield Timed(batch)


@twin("event.create_destroy")
def event_create_destroy(cupy: Any, numpy: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        make = cupy.cuda.Event
        for _ in repeat(calls):
            make(disable_timing=True)

    yield Timed(batch)


@twin("event.create_record_destroy")
def event_create_record_destroy(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream = make_stream(cupy)

    def batch(calls: int) -> None:
        make = cupy.cuda.Event
        for _ in repeat(calls):
            make(disable_timing=True).record(stream)

    yield Timed(batch, stream.synchronize)


@twin("stream.create_destroy")
def stream_create_destroy(cupy: Any, numpy: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        make = cupy.cuda.Stream
        for _ in repeat(calls):
            make(non_blocking=True)

    yield Timed(batch)


@twin("stream.with")
def scope(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream = make_stream(cupy)

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            with stream:
                pass

    yield Timed(batch)


@twin("stream.current")
def current(cupy: Any, numpy: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        current = cupy.cuda.get_current_stream
        for _ in repeat(calls):
            current()

    with make_stream(cupy):
        yield Timed(batch, calls=1000)


@twin("stream.synchronize_idle")
def synchronize_idle(cupy: Any, numpy: Any) -> Iterator[Case]:
    stream = make_stream(cupy)

    def batch(calls: int) -> None:
        synchronize = stream.synchronize
        for _ in repeat(calls):
            synchronize()

    yield Timed(batch)


@twin("memory.alloc_free_4k")
def alloc_free(cupy: Any, numpy: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        make, dtype = cupy.empty, numpy.float32
        for _ in repeat(calls):
            make(PAGE, dtype)

    with make_stream(cupy) as stream:
        yield Timed(batch, stream.synchronize)


@twin("memory.zeros_free_4k")
def zeros_free(cupy: Any, numpy: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        make, dtype = cupy.zeros, numpy.float32
        for _ in repeat(calls):
            make(PAGE, dtype)

    with make_stream(cupy) as stream:
        yield Timed(batch, stream.synchronize)


@twin("copy.pinned_4k")
def copy_pinned(cupy: Any, numpy: Any) -> Iterator[Case]:
    import cupyx

    src = cupyx.zeros_pinned(PAGE, "float32")
    with make_stream(cupy) as stream:
        dst = cupy.zeros(PAGE, "float32")

        def batch(calls: int) -> None:
            copy = dst.set
            for _ in repeat(calls):
                copy(src)

        yield Timed(batch, stream.synchronize)


@twin("copy.device_4k")
def copy_device(cupy: Any, numpy: Any) -> Iterator[Case]:
    with make_stream(cupy) as stream:
        dst, src = (cupy.zeros(PAGE, "float32") for _ in range(2))

        def batch(calls: int) -> None:
            copy = cupy.copyto
            for _ in repeat(calls):
                copy(dst, src)

        yield Timed(batch, stream.synchronize)


@twin("graph.replay10")
def replay(cupy: Any, numpy: Any) -> Iterator[Case]:
    kernel, grid, block, alpha = kernel_of(cupy), (1,), (BLOCK,), numpy.float32(2)
    with make_stream(cupy) as stream:
        x, y, z = (cupy.zeros(PAGE, "float32") for _ in range(3))
        stream.synchronize()
        stream.begin_capture()
        for _ in repeat(10):
            kernel(grid, block, (x, y, z, alpha))
        graph = stream.end_capture()

        def batch(calls: int) -> None:
            launch = graph.launch
            for _ in repeat(calls):
                launch()

        yield Timed(batch, stream.synchronize)


@twin("pipeline.overlap")
def pipeline(cupy: Any, numpy: Any) -> Iterator[Case]:
    import cupyx

    kernel, grid, block, alpha = kernel_of(cupy), (CHUNK_BLOCKS,), (BLOCK,), numpy.float32(0.5)

    def make_lane(stream: Any) -> SimpleNamespace:
        arriving, leaving = (cupyx.zeros_pinned(CHUNK, "float32") for _ in range(2))
        with stream:
            x, z = (cupy.empty(CHUNK, "float32") for _ in range(2))
        return SimpleNamespace(stream=stream, arriving=arriving, leaving=leaving, x=x, z=z)

    def push(lane: SimpleNamespace) -> None:
        with lane.stream:
            lane.x.set(lane.arriving)
            kernel(grid, block, (lane.x, lane.x, lane.z, alpha))
            lane.z.get(out=lane.leaving, blocking=False)

    lanes = [make_lane(make_stream(cupy)) for _ in range(LANES)]
    yield pipeline_case(push, lanes, lambda lane: lane.stream.synchronize())
