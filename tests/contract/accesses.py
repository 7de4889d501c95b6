"""What the tests of hazards share: ways to read and to write an array in a stream, and ways to order two streams."""

import threading
from typing import NamedTuple

import numpy as np
import pytest

import anabranch as ab

from .arrays import TIMEOUT


def ready(device, size=8):
    """Make an array of zeros that nothing has used yet, so that any stream may."""
    return ab.array(np.zeros(size, "float32"), device=device)


def streams(device, count=2):
    """Make streams that have no order with each other, nor with the default stream."""
    return [ab.Stream(device) for _ in range(count)]


# Accesses


# What a kernel declares counts, whatever it does then; these take arrays of any shape.


@ab.kernel
def look(i, source: ab.In):
    pass


@ab.kernel
def put(i, target: ab.Out):
    pass


def read(array, stream):
    """Have a stream read an array, into memory that nobody else knows of."""
    ab.copy(ab.empty(array.shape, array.dtype, stream=stream), array, stream=stream)


def write(array, stream):
    """Have a stream write to an array, without a look at it."""
    ab.fill(array, 1, stream=stream)


class Way(NamedTuple):
    """One way in which streams access arrays."""

    read: object
    write: object
    write_reads: bool = False  # what it calls a write also counts as a read


WAYS = [
    pytest.param(Way(read, write), id="copy"),
    pytest.param(
        Way(
            lambda array, stream: stream.submit(int, reads=[array]),
            lambda array, stream: stream.submit(int, writes=[array]),
            write_reads=True,
        ),
        id="submit",
    ),
    pytest.param(
        Way(
            lambda array, stream: ab.launch(look, 1, array, stream=stream),
            lambda array, stream: ab.launch(put, 1, array, stream=stream),
        ),
        id="launch",
        marks=pytest.mark.numba,
    ),
]
each_way = pytest.mark.parametrize("way", WAYS)

# Two accesses that conflict, by the kind of their race.
PAIRS = {"RAW": ("write", "read"), "WAR": ("read", "write"), "WAW": ("write", "write")}
each_pair = pytest.mark.parametrize(("kind", "first", "second"), [(kind, *pair) for kind, pair in PAIRS.items()])


# Order


def _record_and_wait(before, after):
    event = ab.Event(device=before.device)
    event.record(before)
    event.wait(after)


def _through_a_third(before, after):
    third = ab.Stream(after.device)
    third.wait_stream(before)
    after.wait_stream(third)


def _submit_nothing(before, after):
    # The function's end comes after what was there before, and its start before what is there later.
    before.submit(int)
    after.wait_stream(before)


BY_STREAMS = {
    "wait_stream": lambda before, after: after.wait_stream(before),
    "wait_event": lambda before, after: after.wait_event(before.record_event()),
    "record and wait": _record_and_wait,
    "a third stream": _through_a_third,
    "a function": _submit_nothing,
}


def complete(stream):
    """See to it that a stream is through, without this task knowing of it: another thread waits."""
    waiting = threading.Thread(target=stream.synchronize)
    waiting.start()
    waiting.join(TIMEOUT)
    assert not waiting.is_alive()


def _query(awaited):
    assert awaited.query()


def _query_stream(before, _):
    complete(before)
    _query(before)


def _query_event(before, _):
    event = before.record_event()
    complete(before)
    _query(event)


def _done(before, _):
    future = before.submit(int)
    complete(before)
    assert future.done()


def _elapsed(before, _):
    begin, end = (ab.Event(enable_timing=True, device=before.device) for _ in range(2))
    begin.record(before)
    end.record(before)
    begin.elapsed_time(end)


# Each is followed by work of the task that has waited.
BY_THE_HOST = {
    "stream.synchronize": lambda before, _: before.synchronize(),
    "event.synchronize": lambda before, _: before.record_event().synchronize(),
    "device.synchronize": lambda before, _: before.device.synchronize(),
    "ab.synchronize": lambda *_: ab.synchronize(),
    "ab.synchronize(device)": lambda before, _: ab.synchronize(before.device.alias),
    "stream.query": _query_stream,
    "event.query": _query_event,
    "event.elapsed_time": _elapsed,
    "future.result": lambda before, _: before.submit(int).result(TIMEOUT),
    "future.exception": lambda before, _: before.submit(int).exception(TIMEOUT),
    "future.done": _done,
}

ORDERS = {**BY_STREAMS, **BY_THE_HOST}
each_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
each_order_by_streams = pytest.mark.parametrize("order", BY_STREAMS.values(), ids=BY_STREAMS)
each_order_by_the_host = pytest.mark.parametrize("order", BY_THE_HOST.values(), ids=BY_THE_HOST)
