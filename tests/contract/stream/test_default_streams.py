"""The legacy and the per-thread default stream, with the order that CUDA gives them.

An operation on the legacy stream starts after everything that the blocking streams of its device have by then, and what
they get later starts after it. Non-blocking streams have no order with it. From the CUDA Runtime API, "Stream
synchronization behavior"; what an H200 with driver 580 does was asked where that page leaves room.
"""

import gc

import pytest

import anabranch as ab

from ..programs import Program, each_program

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


# -- the order of the legacy and the blocking streams --


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


EVENTS = {
    "an event of the legacy stream covers blocking streams": "blocking stops, legacy marks e, e waits",
    "an event of a blocking stream covers the legacy stream": "legacy stops, blocking marks e, e waits",
    "who waits for the legacy stream waits for blocking streams": "blocking stops, a after legacy, a waits",
}
# What `works` does is each operation in turn.
WORK = {
    "an event of the legacy stream follows its work": (
        "legacy stops, legacy works, legacy marks e, legacy waits, e waits"
    ),
    "an event of a blocking stream follows its work": (
        "blocking stops, blocking works, blocking marks e, blocking waits, e waits"
    ),
    "the legacy stream starts after blocking streams": "blocking stops, legacy works, legacy waits",
    "blocking streams start after the legacy stream": "legacy stops, blocking works, blocking waits",
    "one made later does, too": "legacy stops, blocking2 works, blocking2 waits",
    "work that a blocking stream has already is not held": (
        "blocking works, blocking marks e, legacy stops, e finishes, legacy waits"
    ),
    "what the legacy stream waits for holds blocking streams": (
        "a stops, legacy after a, blocking works, blocking waits"
    ),
    "what a blocking stream waits for holds the legacy stream": (
        "a stops, blocking after a, legacy works, legacy waits"
    ),
    "work of the legacy stream orders blocking streams": (
        "blocking stops, legacy works, blocking2 works, blocking2 waits"
    ),
    "so does an event": "blocking stops, legacy marks e, blocking2 works, blocking2 waits",
    "so does a wait": "blocking stops, a marks e, legacy after e, blocking2 works, blocking2 waits",
    "blocking streams have no order with each other": (
        "blocking stops, blocking2 works, blocking2 finishes, blocking waits"
    ),
    "non-blocking streams do not wait for the legacy stream": "legacy stops, a works, a finishes, legacy waits",
    "nor the legacy stream for them": "a stops, legacy works, legacy finishes, a waits",
}


@each_program(EVENTS)
@each_blocking
def test_events_and_waits_go_by_the_legacy_order(device, blocking, program):
    Program(device, blocking=blocking()).run_to_the_end(program)


@each_program(WORK)
@each_blocking
def test_work_is_in_the_legacy_order(device, blocking, enqueue, program):
    Program(device, work=enqueue, blocking=blocking()).run_to_the_end(program)


@each_blocking
def test_the_legacy_order_is_of_one_device(device, other_device, blocking, enqueue):
    far = {"far": ab.Stream(other_device, non_blocking=False), "far_legacy": ab.legacy_stream(other_device)}
    program = Program(device, work=enqueue, blocking=blocking(), **far)
    program.run("far_legacy stops, blocking works, blocking finishes, far_legacy waits, far_legacy goes")
    program.run_to_the_end("far stops, legacy works, legacy finishes, far waits")


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
