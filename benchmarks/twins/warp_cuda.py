"""Warp on the CUDA device."""

from collections.abc import Iterator
from typing import Any

from gpu import BLOCK, DEVICE, PAGE, on_gpu
from harness import Case, Timed, repeat
from twins.warp import start

twin = on_gpu("warp", "warp")


@twin("launch.kernel4")
def launch(wp: Any) -> Iterator[Case]:
    kernel = start().scaled_sum
    with wp.ScopedStream(wp.Stream(DEVICE)) as stream:
        x, y, z = (wp.zeros(PAGE, dtype=float, device=DEVICE) for _ in range(3))

        def batch(calls: int) -> None:
            launch = wp.launch
            for _ in repeat(calls):
                launch(kernel, BLOCK, inputs=[2.0, x, y], outputs=[z], stream=stream)

        yield Timed(batch, lambda: wp.synchronize_stream(stream))


@twin("event.record")
def record(wp: Any) -> Iterator[Case]:
    start()
    stream, event = wp.Stream(DEVICE), wp.Event(DEVICE)

    def batch(calls: int) -> None:
        record = stream.record_event
        for _ in repeat(calls):
            record(event)

    yield Timed(batch, lambda: wp.synchronize_stream(stream))


@twin("event.record_wait")
def record_wait(wp: Any) -> Iterator[Case]:
    start()
    streams = wp.Stream(DEVICE), wp.Stream(DEVICE)

    def batch(calls: int) -> None:
        first, second = streams
        for _ in repeat(calls):
            second.wait_stream(first)
            first, second = second, first

    yield Timed(batch, lambda: wp.synchronize_device(DEVICE))


@twin("event.create_destroy")
def event_create_destroy(wp: Any) -> Iterator[Case]:
    start()

    def batch(calls: int) -> None:
        make = wp.Event
        for _ in repeat(calls):
            make(DEVICE)

    yield Timed(batch)


@twin("stream.create_destroy")
def stream_create_destroy(wp: Any) -> Iterator[Case]:
    start()

    def batch(calls: int) -> None:
        make = wp.Stream
        for _ in repeat(calls):
            make(DEVICE)

    yield Timed(batch)


@twin("stream.with")
def scope(wp: Any) -> Iterator[Case]:
    start()
    stream = wp.Stream(DEVICE)

    def batch(calls: int) -> None:
        enter = wp.ScopedStream
        for _ in repeat(calls):
            with enter(stream, sync_enter=False):
                pass

    yield Timed(batch)


@twin("stream.current")
def current(wp: Any) -> Iterator[Case]:
    start()

    def batch(calls: int) -> None:
        current = wp.get_stream
        for _ in repeat(calls):
            current(DEVICE)

    yield Timed(batch, calls=1000)


@twin("stream.synchronize_idle")
def synchronize_idle(wp: Any) -> Iterator[Case]:
    start()
    stream = wp.Stream(DEVICE)

    def batch(calls: int) -> None:
        synchronize = wp.synchronize_stream
        for _ in repeat(calls):
            synchronize(stream)

    yield Timed(batch)


def creations(wp: Any, make: Any) -> Iterator[Case]:
    start()

    def batch(calls: int) -> None:
        dtype = wp.float32
        for _ in repeat(calls):
            make(PAGE, dtype=dtype, device=DEVICE)

    with wp.ScopedStream(wp.Stream(DEVICE)) as stream:
        yield Timed(batch, lambda: wp.synchronize_stream(stream))


@twin("memory.alloc_free_4k")
def alloc_free(wp: Any) -> Iterator[Case]:
    yield from creations(wp, wp.empty)


@twin("memory.zeros_free_4k")
def zeros_free(wp: Any) -> Iterator[Case]:
    yield from creations(wp, wp.zeros)


def copies(wp: Any, **place: Any) -> Iterator[Case]:
    start()
    src = wp.zeros(PAGE, dtype=float, **place)
    wp.synchronize_device(DEVICE)
    stream = wp.Stream(DEVICE)
    dst = wp.empty(PAGE, dtype=float, device=DEVICE)

    def batch(calls: int) -> None:
        copy = wp.copy
        for _ in repeat(calls):
            copy(dst, src, stream=stream)

    yield Timed(batch, lambda: wp.synchronize_stream(stream))


@twin("copy.pinned_4k")
def copy_pinned(wp: Any) -> Iterator[Case]:
    yield from copies(wp, device="cpu", pinned=True)


@twin("copy.device_4k")
def copy_device(wp: Any) -> Iterator[Case]:
    yield from copies(wp, device=DEVICE)
