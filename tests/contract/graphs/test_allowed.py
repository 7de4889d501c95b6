"""What goes on beside a capture: streams and arrays that take no part, and other threads."""

import asyncio
import gc

import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT
from .replays import assert_all, kinds, replays_to


@pytest.fixture
def beside(device):
    """A stream and an array that take no part, with an event recorded there."""
    stream, array = ab.Stream(device), ready(device)
    return stream, array, stream.record_event()


async def _await(what):
    await what


def _elapsed(stream, _, __):
    begin, end = (ab.Event(enable_timing=True, device=stream.device) for _ in range(2))
    begin.record(stream)
    end.record(stream)
    assert begin.elapsed_time(end) >= 0


def _gate(stream, _, __):
    with ab.testing.Gate(stream):
        assert not stream.query()
    stream.synchronize()


def _fork(stream, array, _):
    with ab.fork(2, stream) as (a, b):
        ab.fill(array[:2], 4, stream=a)
        ab.fill(array[2:], 4, stream=b)
    assert_all(array, 4)


def _allocate(stream, _, __):
    array = ab.zeros(1000, stream=stream)
    assert_all(array, 0)
    array.close()


def _wait(stream, array, event):
    other = ab.Stream(stream.device)
    other.wait_event(event)
    other.wait_stream(stream)
    ab.fill(array, 2, stream=other)
    other.synchronize()


ALLOWED = {
    "stream.synchronize": lambda stream, *_: stream.synchronize(),
    "stream.query": lambda stream, *_: stream.query(),
    "event.synchronize": lambda _, __, event: event.synchronize(),
    "event.query": lambda _, __, event: event.query(),
    "elapsed_time": _elapsed,
    "await stream": lambda stream, *_: asyncio.run(_await(stream)),
    "await event": lambda _, __, event: asyncio.run(_await(event)),
    "numpy": lambda _, array, __: array.numpy(),
    "array": lambda stream, *_: ab.array([1, 2, 3], device=stream.device, stream=stream),
    "submit": lambda stream, *_: stream.submit(int).result(TIMEOUT),
    "gate": _gate,
    "fork": _fork,
    "allocate": _allocate,
    "wait": _wait,
    "__cuda_stream__": lambda stream, *_: stream.__cuda_stream__(),
    "a new stream": lambda stream, *_: ab.Stream(stream.device).close(),
    "collect": lambda *_: gc.collect(),
}
each_allowed = pytest.mark.parametrize("allowed", ALLOWED.values(), ids=ALLOWED)


@each_allowed
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another thread"])
def test_who_takes_no_part_does_as_ever(beside, in_thread, allowed, elsewhere, stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        in_thread(allowed, *beside).result(TIMEOUT) if elsewhere else allowed(*beside)
        ab.fill(array, 2)
    assert kinds(graph) == ["fill", "fill"]
    replays_to(graph, stream, [array], 2)


def test_another_thread_may_use_the_legacy_stream_and_synchronize_the_device(device, in_thread):
    stream, array, other = ab.Stream(device), ready(device), ready(device)

    def work():
        ab.fill(other, 3, stream=ab.legacy_stream(device))
        ab.legacy_stream(device).synchronize()
        device.synchronize()
        ab.synchronize()

    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        in_thread(work).result(TIMEOUT)
    assert_all(other, 3)
    replays_to(graph, stream, [array], 1)


def test_the_host_may_have_what_captured_work_only_reads(device):
    stream, source, target = ab.Stream(device), ready(device), ready(device)
    with ab.capture(stream) as graph:
        ab.copy(target, source)
        assert_all(source, 0)
    replays_to(graph, stream, [target], 0)


def test_another_thread_may_have_what_captured_work_writes(device, in_thread):
    """Nothing has run, so what is there is what eager work has left."""
    stream, array = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        assert in_thread(array.numpy).result(TIMEOUT).tolist() == [0] * 8
    replays_to(graph, stream, [array], 1)


def test_eager_work_may_use_what_captured_work_uses(stream, other, array):
    with ab.hazards("check"), ab.capture(stream) as graph:
        ab.fill(array, 1)
        ab.fill(array, 5, stream=other)
        other.synchronize()
    assert_all(array, 5)
    replays_to(graph, stream, [array], 1)


def test_another_thread_cannot_end_a_capture(device, in_thread):
    """It is refused what it asks of a captured stream, and the capture goes on."""
    stream, array = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        for use in stream.synchronize, stream.query, stream.__cuda_stream__:
            with pytest.raises(ab.CaptureError):
                in_thread(use).result(TIMEOUT)
        assert stream.is_capturing
        ab.fill(array, 2)
    replays_to(graph, stream, [array], 2)


def test_what_another_thread_puts_into_a_captured_stream_is_captured(in_thread, stream, array):
    with ab.capture(stream) as graph:
        in_thread(lambda: ab.fill(array, 1, stream=stream)).result(TIMEOUT)
    assert kinds(graph) == ["fill"]
    replays_to(graph, stream, [array], 1)


def test_two_asyncio_tasks_capture_in_turns(device):
    arrays = [ready(device) for _ in range(2)]

    async def capture(array, value, turn, other):
        stream = ab.Stream(device)
        with ab.capture(stream) as graph:
            for number in range(3):
                await turn.wait()
                turn.clear()
                ab.fill(array, value + number)
                assert ab.current_stream() == stream
                other.set()
        return graph

    async def both():
        turns = asyncio.Event(), asyncio.Event()
        turns[0].set()
        return await asyncio.gather(capture(arrays[0], 10, *turns), capture(arrays[1], 20, *turns[::-1]))

    for graph, array, value in zip(asyncio.run(both()), arrays, (12, 22), strict=True):
        assert kinds(graph) == ["fill"] * 3
        replays_to(graph, None, [array], value)


def test_a_refusal_ends_the_capture_of_its_task_only(device):
    one, other, array = ab.Stream(device), ab.Stream(device), ready(device)

    async def good(begun, over):
        with ab.capture(one) as graph:
            begun.set()
            await over.wait()
            ab.fill(array, 1)
        return graph

    async def bad(begun, over):
        await begun.wait()
        with pytest.raises(ab.CaptureError), ab.capture(other):
            other.synchronize()
        over.set()

    async def both():
        begun, over = asyncio.Event(), asyncio.Event()
        return (await asyncio.gather(good(begun, over), bad(begun, over)))[0]

    replays_to(asyncio.run(both()), one, [array], 1)


def test_graphs_are_launched_beside_a_capture(device, stream, x, y):
    with ab.capture(ab.Stream(device)) as inner:
        ab.fill(x, 1)
    with ab.capture(stream) as graph:
        ab.fill(y, 2)
        replays_to(inner, ab.Stream(device), [x], 1)
    replays_to(graph, stream, [y], 2)
