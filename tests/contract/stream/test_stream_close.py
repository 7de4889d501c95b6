"""The end of a stream: closing it, dropping it."""

import asyncio
import gc

import pytest

import anabranch as ab

USES = {
    "query": lambda stream: stream.query(),
    "synchronize": lambda stream: stream.synchronize(),
    "submit": lambda stream: stream.submit(int),
    "record_event": lambda stream: stream.record_event(),
    "record_event of an event": lambda stream: stream.record_event(ab.Event()),
    "wait_event": lambda stream: stream.wait_event(ab.Event()),
    "wait_stream": lambda stream: stream.wait_stream(ab.Stream()),
    "wait_stream of another": lambda stream: ab.Stream().wait_stream(stream),
    "event.record": lambda stream: ab.Event().record(stream),
    "event.wait": lambda stream: ab.Event().wait(stream),
    "with": lambda stream: stream.__enter__(),
    "use": lambda stream: stream.use(),
    "await": lambda stream: asyncio.run(wait_for(stream)),
    "__cuda_stream__": lambda stream: stream.__cuda_stream__(),
    "from_external": lambda stream: ab.Stream.from_external(stream),
    "ScopedStream": lambda stream: ab.ScopedStream(stream).__enter__(),
    "fork": lambda stream: ab.fork(2, stream=stream).__enter__(),
    "empty": lambda stream: ab.empty(1, stream=stream),
    "fill": lambda stream: ab.fill(ab.empty(1), 1, stream=stream),
    "copy": lambda stream: ab.copy(ab.empty(1), ab.empty(1), stream=stream),
    "Gate": lambda stream: ab.testing.Gate(stream),
    "fail": lambda stream: ab.testing.fail(stream),
}


async def wait_for(awaitable):
    return await awaitable


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_use_after_close_is_an_error(use):
    stream = ab.Stream()
    stream.close()
    with pytest.raises(ab.ClosedError):
        use(stream)


def test_closed_tells():
    stream = ab.Stream(name="closing")
    assert stream.closed is False
    stream.close()
    assert stream.closed is True
    assert "closing" in repr(stream)


def test_closing_again_does_nothing():
    stream = ab.Stream()
    assert stream.close() is None
    assert stream.close() is None
    assert stream.closed


def test_leaving_a_scope_does_not_close():
    with ab.Stream() as stream:
        pass
    assert not stream.closed


END = {"closed": ab.Stream.close, "dropped": lambda _: None}
end_each_way = pytest.mark.parametrize("end", END.values(), ids=END)


@end_each_way
def test_the_end_of_a_stream_waits_for_nothing_and_loses_nothing(end):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    work = [stream.submit(int, index) for index in range(10)]
    array = ab.zeros(4, stream=stream)
    ab.fill(array, 3, stream=stream)
    end(stream)
    del stream
    gc.collect()
    assert not any(future.done() for future in work)
    gate.open()
    assert [future.result(10) for future in work] == list(range(10))
    assert array.numpy().tolist() == [3, 3, 3, 3]


@end_each_way
def test_a_wait_outlives_the_stream_waited_for(end):
    earlier, later = ab.Stream(), ab.Stream()
    gate = ab.testing.Gate(earlier)
    later.wait_stream(earlier)
    event = earlier.record_event()
    end(earlier)
    del earlier
    gc.collect()
    assert not later.query()
    assert not event.query()
    gate.open()
    later.synchronize()
    event.synchronize()


@end_each_way
def test_a_wait_outlives_the_stream_that_waits(end):
    earlier, later, done = ab.Stream(), ab.Stream(), []
    gate = ab.testing.Gate(earlier)
    earlier.submit(done.append, "earlier")
    later.wait_stream(earlier)
    work = later.submit(done.append, "later")
    end(later)
    del later
    gc.collect()
    gate.open()
    work.result(10)
    assert done == ["earlier", "later"]


def test_a_handle_may_be_used_again_after_its_stream():
    """No stream takes over the work, the name or the state of one that had its handle before."""
    for index in range(200):
        stream = ab.Stream(name=f"stream {index}")
        assert stream.query()
        assert not stream.closed
        assert stream.name == f"stream {index}"
        assert stream.submit(int, index).result(10) == index
        stream.close()
