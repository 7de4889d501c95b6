"""The legacy and the per-thread default stream, with the order that CUDA gives them.

An operation on the legacy stream starts after everything that the blocking streams of its device have by then, and what
they get later starts after it. Non-blocking streams have no order with it. From the CUDA Runtime API, "Stream
synchronization behavior"; what an H200 with driver 580 does was asked where that page leaves room.
"""

import gc

import pytest

import anabranch as ab

# Whatever blocking streams get, in whichever thread, is in order with the legacy stream, of which a device has but one.
pytestmark = pytest.mark.thread_unsafe(reason="the legacy stream is in order with the blocking streams of all threads")

BLOCKING = {
    "blocking": lambda: ab.Stream(non_blocking=False),
    "per-thread": ab.per_thread_stream,
}
each_blocking = pytest.mark.parametrize("blocking", BLOCKING.values(), ids=BLOCKING)
each_default = pytest.mark.parametrize("default", [ab.legacy_stream, ab.per_thread_stream])


# -- two objects per device --


@each_default
def test_there_is_one_object_per_device(default, device):
    assert default() is default()
    assert default(device) is default(device.alias)


@each_default
def test_each_device_has_its_own(default, device_pair):
    one, two = device_pair
    assert default(one) is not default(two)
    assert default(one) != default(two)
    assert default(two).device is two


@each_default
def test_one_object_serves_every_thread(default, device, in_thread):
    assert in_thread(default, device).result(10) is default(device)


@each_default
def test_the_object_outlives_its_references(default, device):
    before = hash(default())
    gc.collect()
    assert hash(default()) == before
    assert default().device is device


def test_legacy_and_per_thread_are_two_streams():
    assert ab.legacy_stream() != ab.per_thread_stream()
    assert ab.legacy_stream().handle != ab.per_thread_stream().handle


def test_the_default_stream_is_one_of_the_two(device):
    assert ab.default_stream(device) in (ab.legacy_stream(device), ab.per_thread_stream(device))
    assert ab.default_stream(device) is ab.default_stream(device)


@each_default
def test_default_streams_are_blocking_and_of_no_priority(default):
    assert default().non_blocking is False
    assert default().priority == 0


def test_handles_are_those_of_cuda():
    assert ab.legacy_stream().__cuda_stream__() == (0, 1)
    assert ab.per_thread_stream().__cuda_stream__() == (0, 2)


@each_default
def test_a_default_stream_cannot_be_closed(default):
    with pytest.raises(ValueError, match=r"(?i)default|legacy|per.thread"):
        default().close()
    assert default().closed is False
    assert default().submit(int).result(10) == 0


@each_default
def test_a_default_stream_does_what_a_stream_does(default, enqueue):
    stream = default()
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    event = stream.record_event()
    assert not stream.query()
    assert not event.query()
    gate.open()
    event.synchronize()
    stream.synchronize()
    assert stream.query()


# -- the legacy stream after blocking streams --


@each_blocking
def test_the_legacy_stream_starts_after_blocking_streams(blocking, enqueue):
    with ab.testing.Gate(blocking()):
        enqueue(ab.legacy_stream())
        assert not ab.legacy_stream().query()
    ab.legacy_stream().synchronize()


@each_blocking
def test_the_legacy_stream_is_not_done_before_the_blocking_streams_are(blocking):
    """So does CUDA answer, though nothing was enqueued on the legacy stream itself."""
    stream = blocking()
    gate = ab.testing.Gate(stream)
    assert not ab.legacy_stream().query()
    work = stream.submit(int)
    ab.Stream().submit(gate.open)
    ab.legacy_stream().synchronize()
    assert work.done()


@each_blocking
def test_an_event_on_the_legacy_stream_covers_blocking_streams(blocking):
    with ab.testing.Gate(blocking()):
        event = ab.legacy_stream().record_event()
        assert not event.query()
    event.synchronize()


@each_blocking
def test_a_non_blocking_stream_that_waits_for_the_legacy_stream_waits_for_blocking_streams(blocking):
    waiting = ab.Stream()
    with ab.testing.Gate(blocking()):
        waiting.wait_stream(ab.legacy_stream())
        assert not waiting.query()
    waiting.synchronize()


# -- blocking streams after the legacy stream --


@each_blocking
def test_blocking_streams_start_after_the_legacy_stream(blocking, enqueue):
    stream = blocking()
    with ab.testing.Gate(ab.legacy_stream()):
        enqueue(stream)
        assert not stream.query()
    stream.synchronize()


@each_blocking
def test_an_event_on_a_blocking_stream_covers_the_legacy_stream(blocking):
    with ab.testing.Gate(ab.legacy_stream()):
        event = blocking().record_event()
        assert not event.query()
    event.synchronize()


@each_blocking
@pytest.mark.parametrize("waits", [False, True], ids=["record", "wait"])
def test_a_blocking_stream_that_only_records_or_waits_is_done_after_the_legacy_stream(blocking, waits):
    stream, other, legacy = blocking(), ab.Stream(), ab.legacy_stream()
    _kept = [ab.full(1 << 22, 1, "int8", stream=legacy) for _ in range(20)]
    made = legacy.record_event()
    ab.zeros(1, stream=other)
    stream.wait_stream(other) if waits else stream.record_event()
    stream.synchronize()
    assert made.query()


@each_blocking
def test_work_that_a_blocking_stream_has_already_is_not_held_by_the_legacy_stream(blocking):
    stream = blocking()
    work = stream.submit(int)
    with ab.testing.Gate(ab.legacy_stream()):
        assert work.result(10) == 0


def test_a_blocking_stream_made_later_starts_after_the_legacy_stream(enqueue):
    with ab.testing.Gate(ab.legacy_stream()):
        stream = ab.Stream(non_blocking=False)
        enqueue(stream)
        assert not stream.query()
    stream.synchronize()


# -- through the legacy stream --

ACT = {
    "work": lambda: ab.zeros(1, stream=ab.legacy_stream()),
    "host function": lambda: ab.legacy_stream().submit(int),
    "event": lambda: ab.legacy_stream().record_event(),
    "wait": lambda: ab.legacy_stream().wait_event(ab.Stream().record_event()),
}


@pytest.mark.parametrize("act", ACT.values(), ids=ACT)
def test_every_action_on_the_legacy_stream_orders_blocking_streams(act, enqueue):
    first, second = (ab.Stream(non_blocking=False) for _ in range(2))
    with ab.testing.Gate(first):
        act()
        enqueue(second)
        assert not second.query()
    second.synchronize()


@pytest.mark.parametrize(
    "ask", [lambda: ab.legacy_stream().query(), lambda: ab.legacy_stream().handle], ids=["query", "handle"]
)
def test_asking_the_legacy_stream_is_no_action(ask):
    first, second = (ab.Stream(non_blocking=False) for _ in range(2))
    with ab.testing.Gate(first):
        ask()
        second.submit(int).result(10)
        assert not first.query()


def test_order_through_the_legacy_stream_is_order():
    first, second, done = ab.Stream(non_blocking=False), ab.Stream(non_blocking=False), []
    legacy = ab.legacy_stream()
    with ab.testing.Gate(first):
        for index in range(0, 90, 3):
            first.submit(done.append, index)
            legacy.submit(done.append, index + 1)
            second.submit(done.append, index + 2)
            legacy.submit(int)
    legacy.synchronize()
    assert done == list(range(90))


@each_blocking
def test_what_the_legacy_stream_waits_for_holds_blocking_streams(blocking, enqueue):
    stream = blocking()
    held = ab.Stream()
    with ab.testing.Gate(held):
        ab.legacy_stream().wait_stream(held)
        enqueue(stream)
        assert not stream.query()
    stream.synchronize()


def test_the_legacy_stream_starts_after_what_a_blocking_stream_waits_for(enqueue):
    held, waiting = ab.Stream(), ab.Stream(non_blocking=False)
    with ab.testing.Gate(held):
        waiting.wait_stream(held)
        enqueue(ab.legacy_stream())
        assert not ab.legacy_stream().query()
    ab.legacy_stream().synchronize()


@pytest.mark.parametrize("end", [ab.Stream.close, lambda _: None], ids=["closed", "dropped"])
def test_the_legacy_stream_starts_after_a_blocking_stream_that_is_gone(end):
    stream, done = ab.Stream(non_blocking=False), []
    gate = ab.testing.Gate(stream)
    stream.submit(done.append, "blocking")
    end(stream)
    del stream
    gc.collect()
    ab.legacy_stream().submit(done.append, "legacy")
    assert not ab.legacy_stream().query()
    gate.open()
    ab.legacy_stream().synchronize()
    assert done == ["blocking", "legacy"]


# -- no order --


def test_non_blocking_streams_do_not_wait_for_the_legacy_stream(enqueue, stream):
    with ab.testing.Gate(ab.legacy_stream()):
        enqueue(stream)
        stream.synchronize()
        assert not ab.legacy_stream().query()


def test_the_legacy_stream_does_not_wait_for_non_blocking_streams(enqueue):
    stream, legacy = ab.Stream(), ab.legacy_stream()
    with ab.testing.Gate(stream):
        enqueue(legacy)
        legacy.synchronize()
        assert legacy.query()
        assert not stream.query()


@each_blocking
def test_blocking_streams_have_no_order_among_themselves(blocking, enqueue):
    held = blocking()
    stream = ab.Stream(non_blocking=False)
    with ab.testing.Gate(held):
        enqueue(stream)
        stream.synchronize()
        assert not held.query()


@each_blocking
def test_the_legacy_stream_holds_blocking_streams_of_its_own_device_only(blocking, enqueue, other_device):
    stream = blocking()
    with other_device:
        legacy = ab.legacy_stream()
    with ab.testing.Gate(legacy):
        enqueue(stream)
        stream.synchronize()
        assert not legacy.query()


def test_the_legacy_stream_waits_for_blocking_streams_of_its_own_device_only(other_device):
    with ab.testing.Gate(ab.Stream(other_device, non_blocking=False)):
        ab.legacy_stream().submit(int).result(10)
        ab.legacy_stream().synchronize()


# -- the per-thread stream --


def test_the_per_thread_stream_has_a_queue_in_each_thread(device, in_thread, enqueue):
    stream = ab.per_thread_stream(device)

    def use():
        enqueue(stream)
        stream.synchronize()
        return stream.query()

    with ab.testing.Gate(stream):
        assert in_thread(use).result(10) is True
        assert not stream.query()


def test_threads_hold_their_own_queue_only(device, in_thread):
    stream = ab.per_thread_stream(device)
    gate = in_thread(ab.testing.Gate, stream).result(10)
    stream.submit(int).result(10)
    assert stream.query()
    gate.open()


def test_the_queue_of_a_thread_that_ended_goes_on(device, in_thread):
    def enqueue():
        stream = ab.per_thread_stream(device)
        gate = ab.testing.Gate(stream)
        return gate, stream.submit(int, 7), stream.record_event()

    gate, work, event = in_thread(enqueue).result(10)
    gc.collect()
    assert not event.query()
    gate.open()
    assert work.result(10) == 7
    event.synchronize()


def test_a_new_thread_gets_a_queue_with_nothing_in_it(device, in_thread):
    gate = in_thread(lambda: ab.testing.Gate(ab.per_thread_stream(device))).result(10)
    assert all(in_thread(lambda: ab.per_thread_stream(device).query()).result(10) for _ in range(5))
    gate.open()


def test_the_legacy_stream_starts_after_the_per_thread_streams_of_all_threads(device, in_thread):
    gate = in_thread(lambda: ab.testing.Gate(ab.per_thread_stream(device))).result(10)
    ab.per_thread_stream().submit(int).result(10)
    ab.legacy_stream().submit(int)
    ab.per_thread_stream().submit(int)
    assert not ab.legacy_stream().query()
    assert not ab.per_thread_stream().query()
    gate.open()
    ab.per_thread_stream().synchronize()


def test_the_per_thread_streams_of_all_threads_start_after_the_legacy_stream(device, in_thread):
    def use():
        work = ab.per_thread_stream(device).submit(int)
        return ab.per_thread_stream(device).query(), work

    with ab.testing.Gate(ab.legacy_stream()):
        query, work = in_thread(use).result(10)
        assert query is False
        assert not work.done()
    assert work.result(10) == 0


def test_threads_order_their_queues_by_events(device, in_thread):
    stream = ab.per_thread_stream(device)

    def wait():
        stream.wait_event(event)
        return stream.query(), stream.record_event()

    with ab.testing.Gate(stream):
        event = stream.record_event()
        query, waited = in_thread(wait).result(10)
        assert query is False
        assert not waited.query()
    waited.synchronize()


def test_a_host_function_has_a_per_thread_queue_of_its_own(device):
    def use():
        ab.per_thread_stream(device).synchronize()
        return ab.per_thread_stream(device).query()

    with ab.testing.Gate(ab.per_thread_stream()):
        assert ab.Stream().submit(use).result(10) is True
