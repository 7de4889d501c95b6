"""What cannot be captured: the error is raised at its line, and the capture has ended."""

import asyncio
import contextlib
import gc
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT, becomes, comes
from .replays import assert_all, here, line_raised_at, replays_to


class Captured(NamedTuple):
    """What a capture has: its stream, an event recorded in it, one with timing, and an array that it writes."""

    stream: object
    event: object
    timed: object
    array: object
    outside: object  # a stream that takes no part
    before: object  # an event that was recorded there

    @property
    def device(self):
        return self.stream.device


def prepare(device):
    outside = ab.Stream(device)
    timed = ab.Event(enable_timing=True, device=device)
    return Captured(ab.Stream(device), ab.Event(device=device), timed, ready(device), outside, outside.record_event())


def begin(captured):
    """Put something into the stream that is captured."""
    ab.fill(captured.array, 7, stream=captured.stream)
    captured.event.record(captured.stream)
    captured.timed.record(captured.stream)


async def _wait_for(what):
    await what


HOST_WAITS = {
    "stream.synchronize": lambda c: c.stream.synchronize(),
    "stream.query": lambda c: c.stream.query(),
    "event.synchronize": lambda c: c.event.synchronize(),
    "event.query": lambda c: c.event.query(),
    "event.elapsed_time": lambda c: c.timed.elapsed_time(c.timed),
    "device.synchronize": lambda c: c.device.synchronize(),
    "ab.synchronize": lambda c: ab.synchronize(),
    "ab.synchronize(device)": lambda c: ab.synchronize(c.device),
    "numpy": lambda c: c.array.numpy(),
    "numpy of a view": lambda c: c.array[1:3].numpy(),
    "to_host": lambda c: ab.to_host(c.array),
}
OTHERS = {
    "array": lambda c: ab.array([1, 2, 3], device=c.device, stream=c.stream),
    "gate": lambda c: ab.testing.Gate(c.stream),
    "fail": lambda c: ab.testing.fail(c.stream),
    "wait_event": lambda c: c.stream.wait_event(c.before),
    "event.wait": lambda c: c.before.wait(c.stream),
    "wait_stream": lambda c: c.stream.wait_stream(c.outside),
    "legacy fill": lambda c: ab.fill(c.array, 1, stream=ab.legacy_stream(c.device)),
    "legacy record": lambda c: c.event.record(ab.legacy_stream(c.device)),
    "legacy query": lambda c: ab.legacy_stream(c.device).query(),
    "legacy wait": lambda c: ab.legacy_stream(c.device).wait_stream(c.stream),
    "wait for legacy": lambda c: c.stream.wait_stream(ab.legacy_stream(c.device)),
    "__cuda_stream__": lambda c: c.stream.__cuda_stream__(),
    "capture": lambda c: ab.capture(ab.Stream(c.device)).__enter__(),
}
# Of memory that the host can see.
VIEWS = {
    "host": lambda c: c.array.host().__enter__(),
    "host to write": lambda c: c.array.host(write=True).__enter__(),
    "__array__": lambda c: np.asarray(c.array),
    "__dlpack__ for numpy": lambda c: np.from_dlpack(c.array),
}
FORBIDDEN = {**HOST_WAITS, **OTHERS, **VIEWS}
AWAITED = {"stream": lambda c: c.stream, "event": lambda c: c.event}


@pytest.fixture(params=FORBIDDEN)
def forbidden(request, device):
    if request.param in VIEWS and device.kind != "cpu":
        pytest.skip("the host has no view of a GPU's memory")
    return FORBIDDEN[request.param]


@pytest.fixture
def captured(device):
    return prepare(device)


def assert_over(captured):
    """Nothing is captured any more, and every stream is as good as before."""
    for number, stream in enumerate((captured.stream, captured.outside, ab.Stream(captured.device)), 1):
        assert not stream.is_capturing
        ab.fill(captured.array, number, stream=stream)
        stream.synchronize()
        assert stream.query()
        assert_all(captured.array, number)
    with ab.capture(captured.stream) as graph:
        ab.fill(captured.array, 9)
    replays_to(graph, captured.stream, [captured.array], 9)


def test_it_is_raised_at_its_line_and_ends_the_capture(captured, forbidden):
    with pytest.raises(ab.CaptureError) as caught, ab.capture(captured.stream) as graph:  # noqa: PT012
        begin(captured)
        line = here() + 1
        forbidden(captured)
        raise AssertionError
    assert line_raised_at(caught) == line
    with pytest.raises(ab.CaptureError):
        graph.launch(captured.stream)
    assert_all(captured.array, 0)
    assert_over(captured)


def test_the_error_that_is_swallowed_is_raised_at_the_end_of_the_block(captured, forbidden):
    with pytest.raises(ab.CaptureError) as caught, ab.capture(captured.stream):  # noqa: PT012
        begin(captured)
        with pytest.raises(ab.CaptureError) as first:
            forbidden(captured)
        assert not captured.stream.is_capturing
    if "capture in a capture" not in str(first.value):
        assert str(first.value) in str(caught.value)
    assert_over(captured)


def test_what_follows_a_swallowed_error_is_not_captured(captured, forbidden):
    with pytest.raises(ab.CaptureError), ab.capture(captured.stream) as graph:  # noqa: PT012
        begin(captured)
        with contextlib.suppress(ab.CaptureError):
            forbidden(captured)
        ab.fill(captured.array, 3)
    assert_all(captured.array, 3)
    with pytest.raises(ab.CaptureError):
        graph.launch()
    assert_over(captured)


def test_what_the_block_raises_wins(captured, forbidden):
    with pytest.raises(ZeroDivisionError), ab.capture(captured.stream):  # noqa: PT012
        begin(captured)
        with contextlib.suppress(ab.CaptureError):
            forbidden(captured)
        raise ZeroDivisionError
    assert_over(captured)


@pytest.mark.parametrize("awaited", AWAITED.values(), ids=AWAITED)
def test_captured_work_cannot_be_awaited(captured, awaited):
    async def work():
        with ab.capture(captured.stream):
            begin(captured)
            await awaited(captured)

    with pytest.raises(ab.CaptureError):
        asyncio.run(work())
    assert_over(captured)


def test_the_error_says_what_to_do_instead(captured):
    for use, words in (
        (lambda: captured.stream.synchronize(), "launched"),
        (lambda: captured.stream.query(), "launched"),
        (lambda: captured.array.numpy(), "launch"),
        (lambda: captured.stream.wait_stream(captured.outside), "before the capture"),
        (lambda: ab.fill(captured.array, 1, stream=ab.legacy_stream(captured.device)), "legacy"),
    ):
        with pytest.raises(ab.CaptureError, match=words), ab.capture(captured.stream):  # noqa: PT012
            begin(captured)
            use()


def test_a_copy_through_the_host_is_refused(captured):
    if captured.device.kind == "cpu":
        pytest.skip("all memory of a CPU is the host's")
    pageable = ab.zeros(captured.array.size, device="cpu")
    for pair in (captured.array, pageable), (pageable, captured.array):
        with pytest.raises(ab.CaptureError, match="pinned"), ab.capture(captured.stream):
            ab.copy(*pair, stream=captured.stream)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, ab.RaceError, ab.CaptureError])
def test_an_exception_of_the_block_ends_the_capture(captured, error):
    raised = error("mine")
    with pytest.raises(error) as caught, ab.capture(captured.stream) as graph:  # noqa: PT012
        begin(captured)
        raise raised
    assert caught.value is raised
    with pytest.raises(ab.CaptureError):
        graph.launch()
    assert_over(captured)


def test_streams_that_had_joined_are_usable_after_an_error(captured):
    joined = [ab.Stream(captured.device) for _ in range(3)]
    with pytest.raises(ab.CaptureError), ab.capture(captured.stream):  # noqa: PT012
        begin(captured)
        for stream in joined:
            stream.wait_event(captured.event)
            assert stream.is_capturing
        joined[1].synchronize()
    for stream in joined:
        assert not stream.is_capturing
        ab.fill(captured.array, 3, stream=stream)
        stream.synchronize()
    assert_over(captured)


def test_an_event_of_a_capture_that_is_over_is_no_event(captured):
    """Whether the capture went well or not; until it is recorded again."""
    for fails in False, True:
        with contextlib.suppress(ZeroDivisionError), ab.capture(captured.stream):
            begin(captured)
            if fails:
                raise ZeroDivisionError
        for use in (
            captured.event.query,
            captured.event.synchronize,
            lambda: captured.outside.wait_event(captured.event),
            lambda: captured.stream.wait_event(captured.event),
        ):
            with pytest.raises((ab.CaptureError, ab.EventError)):
                use()
        captured.event.record(captured.stream)
        captured.event.synchronize()
        assert captured.event.query()


# Nothing leaks


def borrowed(device):
    """Make an array of memory that is not ours, and an event that is set when it is let go."""
    if device.index or device.kind != "cpu":
        pytest.skip("memory of the host is the first CPU's")
    memory, gone = np.zeros(8, "float32"), threading.Event()
    weakref.finalize(memory, gone.set)
    return ab.asarray(memory), gone


@pytest.mark.parametrize("how", ["refused", "raised"])
def test_an_aborted_capture_lets_its_arrays_go(device, how):
    stream = ab.Stream(device)
    array, gone = borrowed(device)
    with contextlib.suppress(ab.CaptureError, ZeroDivisionError), ab.capture(stream):
        ab.fill(array, 1)
        if how == "raised":
            raise ZeroDivisionError
        stream.synchronize()
    del array
    gc.collect()
    assert comes(gone)


@pytest.mark.memory
@pytest.mark.parametrize("how", ["refused", "raised"])
def test_an_aborted_capture_gives_its_memory_back(device, how):
    device.synchronize()
    stream, size = ab.Stream(device), 1 << 24
    free = device.free_memory
    # The pool of a GPU may still have what the last one gave back.
    rounds = 8
    for _ in range(rounds):
        with contextlib.suppress(ab.CaptureError, ZeroDivisionError), ab.capture(stream):
            kept = ab.zeros(size, "int8")
            dropped = ab.zeros(2 * size, "int8")
            assert dropped.ptr != kept.ptr
            del dropped
            if how == "raised":
                raise ZeroDivisionError
            stream.synchronize()
        kept.close()
        stream.synchronize()
        device.synchronize()
    # What no stream has used since is freed by one that nobody waits for.
    assert becomes(lambda: device.free_memory >= free - (size // 2 if device.kind == "cpu" else 4 * size))


def test_an_array_of_an_aborted_capture_is_an_array_like_others(device, stream):
    with contextlib.suppress(ab.CaptureError), ab.capture(stream):
        array = ab.zeros(8)
        stream.query()
    ab.fill(array, 3, stream=stream)
    assert_all(array, 3)
    other = ab.Stream(device)
    ab.fill(array, 4, stream=other)
    assert_all(array, 4)


def test_a_future_of_an_aborted_capture_does_not_hang(stream):
    with contextlib.suppress(ZeroDivisionError), ab.capture(stream):
        future = stream.submit(int)
        raise ZeroDivisionError
    gc.collect()
    with pytest.raises(BaseException):  # noqa: B017, PT011 (that it ends is what counts)
        future.result(TIMEOUT / 10)


def test_an_event_of_a_capture_that_is_over_says_so(device):
    captured = prepare(device)
    with ab.capture(captured.stream):
        begin(captured)
        event = captured.stream.record_event()
    for call in (event.query, event.synchronize, lambda: captured.outside.wait_event(event)):
        with pytest.raises(ab.CaptureError, match="record an event anew after the launch"):
            call()
