"""Events: markers in a stream."""

import asyncio
import gc
import re
import time

import pytest

import anabranch as ab

from ..programs import Program, each_program


def busy(seconds):
    """Keep a host thread at work; gives when it began and ended, in milliseconds."""
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        pass
    return 1000 * begin, 1000 * time.perf_counter()


# -- construction and attributes --


def test_defaults(device):
    event = ab.Event()
    assert event.device is device
    assert event.closed is False
    assert isinstance(event.handle, int)


@pytest.mark.parametrize("timing", [False, True])
def test_an_event_has_a_handle_of_its_own_from_the_start(timing):
    events = [ab.Event(timing) for _ in range(10)]
    handles = [event.handle for event in events]
    assert len({*handles, 0}) == 11
    for event in events:
        assert event.query()
        event.record()
    assert [event.handle for event in events] == handles


def test_an_event_belongs_to_the_device_given(other_device):
    assert ab.Event(device=other_device).device is other_device
    assert ab.Event(device=other_device.alias).device is other_device


def test_flags_are_positional_and_the_device_is_given_by_name(device):
    ab.Event(True, True, False)
    with pytest.raises(TypeError):
        ab.Event(False, False, False, device)


def test_timing_and_interprocess_exclude_each_other():
    with pytest.raises(ValueError, match=r"(?i)timing.*interprocess|interprocess.*timing"):
        ab.Event(enable_timing=True, interprocess=True)


def test_repr_shows_the_device(device):
    assert device.alias in repr(ab.Event())


# -- recording --


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("timing", [False, True])
def test_an_event_completes_when_the_work_before_it_has(enqueue, blocking, timing):
    stream, event = ab.Stream(), ab.Event(enable_timing=timing, blocking=blocking)
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    event.record(stream)
    assert event.query() is False
    gate.open()
    assert event.synchronize() is None
    assert event.query() is True


@pytest.mark.parametrize("blocking", [False, True])
def test_synchronize_waits_for_work_that_the_host_has_to_release(blocking):
    stream, event = ab.Stream(), ab.Event(blocking=blocking)
    gate = ab.testing.Gate(stream)
    work = stream.submit(int)
    event.record(stream)
    ab.Stream().submit(gate.open)  # needs the interpreter, which this thread gives up once it waits
    event.synchronize()
    assert work.done()


def test_record_without_a_stream_takes_the_current_one():
    event = ab.Event()
    with ab.Stream() as stream, ab.testing.Gate(stream):
        event.record()
        assert not event.query()
    event.synchronize()


def test_wait_without_a_stream_holds_the_current_one():
    earlier = ab.Stream()
    with ab.testing.Gate(earlier):
        event = earlier.record_event()
        with ab.Stream() as stream:
            event.wait()
        assert not stream.query()
    stream.synchronize()


def test_record_event_makes_an_event_of_the_device(other_device):
    event = ab.Stream(other_device).record_event()
    assert isinstance(event, ab.Event)
    assert event.device is other_device


def test_record_event_records_and_returns_the_event_given():
    stream, event = ab.Stream(), ab.Event()
    with ab.testing.Gate(stream):
        assert stream.record_event(event) is event
        assert not event.query()


RECORD = {
    "record": lambda event, stream: event.record(stream),
    "record_event": lambda event, stream: stream.record_event(event),
}


@pytest.mark.parametrize("record", RECORD.values(), ids=RECORD)
def test_recording_on_a_stream_of_another_device_is_an_error(record, device, other_device):
    event, stream = ab.Event(), ab.Stream(other_device)
    with pytest.raises(ab.DeviceError) as caught:
        record(event, stream)
    assert device.alias in str(caught.value)
    assert other_device.alias in str(caught.value)
    assert event.query()  # still never recorded


# -- an event that was never recorded --


def test_an_event_never_recorded_is_complete():
    event = ab.Event()
    assert event.query() is True
    assert event.synchronize() is None


def test_a_wait_for_an_event_never_recorded_holds_nothing_even_if_it_is_recorded_later():
    event, earlier, later = ab.Event(), ab.Stream(), ab.Stream()
    later.wait_event(event)
    with ab.testing.Gate(earlier):
        event.record(earlier)
        assert later.query()


# -- recording again --

RECORDS = {
    "an event does not wait for the work after it": "a marks e, a stops, a works, e finishes, a waits",
    "recording again replaces the record": (
        "a marks e, e finishes, b stops, b marks e, e waits, a marks e, e finishes, b waits"
    ),
    "a wait keeps the record it found when the new one is complete": (
        "a stops, a marks e, c after e, b marks e, e finishes, c waits"
    ),
    "a wait keeps the record it found when the new one is not complete": (
        "a stops, a marks e, c after e, b stops, b marks e, a goes, c finishes, e waits"
    ),
}


@each_program(RECORDS)
def test_an_event_covers_what_was_there_at_its_record(device, enqueue, program):
    Program(device, work=enqueue).run_to_the_end(program)


def test_an_event_may_be_waited_for_by_a_stream_of_another_device(device, other_device):
    program = Program(device, other_device)
    program.run("a stops, a marks e, other after e, other waits, a goes, other finishes, host asks e")


def test_one_event_recorded_many_times_orders_each_wait_by_its_own_record():
    event, first, second, done = ab.Event(), ab.Stream(), ab.Stream(), []
    with ab.testing.Gate(first):
        for index in range(0, 100, 2):
            first.submit(done.append, index)
            event.record(first)
            second.wait_event(event)
            second.submit(done.append, index + 1)
            first.wait_event(second.record_event())
    first.synchronize()
    assert done == list(range(100))


def test_many_waits_for_one_record():
    event, first = ab.Event(), ab.Stream()
    waiting = [ab.Stream() for _ in range(100)]
    with ab.testing.Gate(first):
        event.record(first)
        for stream in waiting:
            event.wait(stream)
        assert not any(stream.query() for stream in waiting)
    for stream in waiting:
        stream.synchronize()


# -- timing --


def test_elapsed_time_is_the_time_of_the_work_between_in_milliseconds():
    stream, begin, end = ab.Stream(), ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    before = stream.submit(busy, 0.001)
    begin.record(stream)
    between = stream.submit(busy, 0.02)
    end.record(stream)
    after = stream.submit(busy, 0.001)
    elapsed = begin.elapsed_time(end)
    assert isinstance(elapsed, float)
    at_least = between.result()[1] - between.result()[0]
    at_most = after.result(10)[0] - before.result()[1]
    assert at_least - 0.01 <= elapsed <= at_most + 0.01


def test_an_event_is_stamped_when_it_completes_not_when_it_is_enqueued_or_asked():
    stream, begin, end = ab.Stream(), ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    with ab.testing.Gate(stream):
        before = stream.submit(busy, 0)
        begin.record(stream)
        end.record(stream)
        after = stream.submit(busy, 0)
        busy(0.02)
    after.result(10)
    busy(0.02)
    assert 0 <= begin.elapsed_time(end) <= after.result()[0] - before.result()[1] + 0.01


def test_elapsed_time_orders_events_of_two_streams(a, b):
    begin, end = ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    begin.record(a)
    between = a.submit(busy, 0.005)
    b.wait_stream(a)
    end.record(b)
    assert begin.elapsed_time(end) >= between.result(10)[1] - between.result()[0] - 0.01


def test_elapsed_time_waits_for_both_events():
    first, second = ab.Stream(), ab.Stream()
    begin, end = ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    gates = [ab.testing.Gate(first), ab.testing.Gate(second)]
    begin.record(first)
    end.record(second)
    ab.Stream().submit(lambda: [gate.open() for gate in gates])
    assert isinstance(begin.elapsed_time(end), float)
    assert begin.query()
    assert end.query()


def test_elapsed_time_from_an_event_to_itself_is_nothing():
    event = ab.Event(enable_timing=True)
    event.record(ab.Stream())
    assert event.elapsed_time(event) == 0


def test_elapsed_time_is_that_of_the_last_records():
    stream, begin, end = ab.Stream(), ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    begin.record(stream)
    stream.submit(busy, 0.02).result(10)
    now, _ = busy(0)
    begin.record(stream)
    end.record(stream)
    end.synchronize()
    assert begin.elapsed_time(end) <= busy(0)[1] - now + 0.01


def untimed():
    return ab.Stream().record_event()


def unrecorded():
    return ab.Event(enable_timing=True)


def timed():
    return ab.Stream().record_event(ab.Event(enable_timing=True))


@pytest.mark.parametrize(("bad", "why"), [(untimed, "timing"), (unrecorded, "record")])
def test_elapsed_time_says_which_event_cannot_tell_and_why(bad, why):
    with pytest.raises(ab.EventError, match=why) as first:
        bad().elapsed_time(timed())
    with pytest.raises(ab.EventError, match=why) as second:
        timed().elapsed_time(bad())
    first_words, second_words = (re.sub(r"0x[0-9a-f]+|\d+", "", str(caught.value)) for caught in (first, second))
    assert first_words != second_words


def test_elapsed_time_of_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        timed().elapsed_time(ab.Stream())


# -- closing --

USES = {
    "record": lambda event: event.record(),
    "record_event": lambda event: ab.Stream().record_event(event),
    "wait": lambda event: event.wait(),
    "wait_event": lambda event: ab.Stream().wait_event(event),
    "query": lambda event: event.query(),
    "synchronize": lambda event: event.synchronize(),
    "elapsed_time": lambda event: event.elapsed_time(timed()),
    "elapsed_time to it": lambda event: timed().elapsed_time(event),
    "await": lambda event: asyncio.run(wait_for(event)),
}


async def wait_for(awaitable):
    return await awaitable


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_use_after_close_is_an_error(use):
    event = timed()
    event.close()
    with pytest.raises(ab.ClosedError):
        use(event)


def test_closing_again_does_nothing():
    event = ab.Event()
    assert event.close() is None
    assert event.close() is None
    assert event.closed is True
    assert isinstance(repr(event), str)


@pytest.mark.parametrize("end", [ab.Event.close, lambda _: None], ids=["closed", "dropped"])
def test_a_wait_outlives_the_event(end):
    earlier, later, event = ab.Stream(), ab.Stream(), ab.Event()
    with ab.testing.Gate(earlier):
        event.record(earlier)
        later.wait_event(event)
        end(event)
        del event
        gc.collect()
        assert not later.query()
    later.synchronize()
