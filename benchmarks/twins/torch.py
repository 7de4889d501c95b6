"""PyTorch. Its launch is `torch.add` with a scale, which is one kernel of three arrays and a scalar."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from gpu import BLOCK, CHUNK, DEVICE, LANES, PAGE, on_gpu, pipeline_case
from harness import Case, Timed, repeat

twin = on_gpu("torch", "torch")


@twin("launch.4args")
def four_arguments(torch: Any) -> Iterator[Case]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y, z = (torch.zeros(BLOCK, device=DEVICE) for _ in range(3))

        def batch(calls: int) -> None:
            add = torch.add
            for _ in repeat(calls):
                add(y, x, alpha=2.0, out=z)

        yield Timed(batch, stream.synchronize)


@twin("event.record")
def record(torch: Any) -> Iterator[Case]:
    stream, event = torch.cuda.Stream(), torch.cuda.Event()

    def batch(calls: int) -> None:
        record = event.record
        for _ in repeat(calls):
            record(stream)

    yield Timed(batch, stream.synchronize)


@twin("event.record_wait")
def record_wait(torch: Any) -> Iterator[Case]:
    streams = torch.cuda.Stream(), torch.cuda.Stream()

    def batch(calls: int) -> None:
        first, second = streams
        for _ in repeat(calls):
            second.wait_stream(first)
            first, second = second, first

    yield Timed(batch, torch.cuda.synchronize)


@twin("event.query")
def query(torch: Any) -> Iterator[Case]:
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    event.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        query = event.query
        for _ in repeat(calls):
            query()

    yield Timed(batch)


@twin("event.elapsed_time")
def elapsed_time(torch: Any) -> Iterator[Case]:
    stream, begin, end = torch.cuda.Stream(), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    end.record(stream)
    stream.synchronize()

    def batch(calls: int) -> None:
        elapsed_time = begin.elapsed_time
        for _ in repeat(calls):
            elapsed_time(end)

    yield Timed(batch)


@twin("event.create_destroy")
def event_create_destroy(torch: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        make = torch.cuda.Event
        for _ in repeat(calls):
            make()

    yield Timed(batch)


@twin("event.create_record_destroy")
def event_create_record_destroy(torch: Any) -> Iterator[Case]:
    stream = torch.cuda.Stream()

    def batch(calls: int) -> None:
        make = torch.cuda.Event
        for _ in repeat(calls):
            make().record(stream)

    yield Timed(batch, stream.synchronize)


@twin("stream.create_destroy")
def stream_create_destroy(torch: Any) -> Iterator[Case]:
    """It takes a stream from a fixed pool of 32, which are shared after that."""

    def batch(calls: int) -> None:
        make = torch.cuda.Stream
        for _ in repeat(calls):
            make()

    yield Timed(batch)


@twin("stream.with")
def scope(torch: Any) -> Iterator[Case]:
    stream = torch.cuda.Stream()

    def batch(calls: int) -> None:
        enter = torch.cuda.stream
        for _ in repeat(calls):
            with enter(stream):
                pass

    yield Timed(batch)


@twin("stream.current")
def current(torch: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        current = torch.cuda.current_stream
        for _ in repeat(calls):
            current()

    with torch.cuda.stream(torch.cuda.Stream()):
        yield Timed(batch, calls=1000)


@twin("stream.synchronize_idle")
def synchronize_idle(torch: Any) -> Iterator[Case]:
    stream = torch.cuda.Stream()

    def batch(calls: int) -> None:
        synchronize = stream.synchronize
        for _ in repeat(calls):
            synchronize()

    yield Timed(batch)


def creations(torch: Any, make: Any) -> Iterator[Case]:
    def batch(calls: int) -> None:
        for _ in repeat(calls):
            make(PAGE, device=DEVICE)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield Timed(batch, stream.synchronize)


@twin("memory.alloc_free_4k")
def alloc_free(torch: Any) -> Iterator[Case]:
    yield from creations(torch, torch.empty)


@twin("memory.zeros_free_4k")
def zeros_free(torch: Any) -> Iterator[Case]:
    yield from creations(torch, torch.zeros)


def copies(torch: Any, src: Any) -> Iterator[Case]:
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        dst = torch.zeros(PAGE, device=DEVICE)

        def batch(calls: int) -> None:
            copy = dst.copy_
            for _ in repeat(calls):
                copy(src, non_blocking=True)

        yield Timed(batch, stream.synchronize)


@twin("copy.pinned_4k")
def copy_pinned(torch: Any) -> Iterator[Case]:
    yield from copies(torch, torch.zeros(PAGE, pin_memory=True))


@twin("copy.device_4k")
def copy_device(torch: Any) -> Iterator[Case]:
    yield from copies(torch, torch.zeros(PAGE, device=DEVICE))


@twin("graph.replay10")
def replay(torch: Any) -> Iterator[Case]:
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    x, y, z = (torch.zeros(BLOCK, device=DEVICE) for _ in range(3))
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in repeat(10):
            torch.add(y, x, alpha=2.0, out=z)
    with torch.cuda.stream(stream):

        def batch(calls: int) -> None:
            replay = graph.replay
            for _ in repeat(calls):
                replay()

        yield Timed(batch, stream.synchronize)


@twin("pipeline.overlap")
def pipeline(torch: Any) -> Iterator[Case]:
    def make_lane() -> SimpleNamespace:
        return SimpleNamespace(
            stream=torch.cuda.Stream(),
            arriving=torch.zeros(CHUNK, pin_memory=True),
            leaving=torch.zeros(CHUNK, pin_memory=True),
            x=torch.empty(CHUNK, device=DEVICE),
            z=torch.empty(CHUNK, device=DEVICE),
        )

    def push(lane: SimpleNamespace) -> None:
        with torch.cuda.stream(lane.stream):
            lane.x.copy_(lane.arriving, non_blocking=True)
            torch.add(lane.x, lane.x, alpha=0.5, out=lane.z)
            lane.leaving.copy_(lane.z, non_blocking=True)

    lanes = [make_lane() for _ in range(LANES)]
    yield pipeline_case(push, lanes, lambda lane: lane.stream.synchronize())
