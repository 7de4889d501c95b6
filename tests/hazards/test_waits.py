"""Under "auto" waits are added exactly where order is missing.

The streams under test are held, since for what is over no wait is needed.
"""

from contextlib import ExitStack

import pytest

import anabranch as ab

from ..contract.programs import Program, each_program


@pytest.fixture
def array(streams):
    made = ab.zeros(16, "int32", stream=streams[0])
    streams[0].synchronize()
    return made


@pytest.fixture(autouse=True)
def held(streams, array):
    """All streams are held until the test opens what is given here."""
    with ExitStack() as gates:
        for stream in streams:
            gates.enter_context(ab.testing.Gate(stream))
        yield gates


def write(array, stream):
    ab.fill(array, 1, stream=stream)


def read(array, stream):
    stream.submit(int, reads=[array])


ORDERED = {
    "the same stream": lambda a, b, c, d: a,
    "wait_stream": lambda a, b, c, d: b.wait_stream(a),
    "event": lambda a, b, c, d: b.wait_event(a.record_event()),
    "through a third stream": lambda a, b, c, d: (c.wait_stream(a), b.wait_stream(c)),
    "through events and another device": lambda a, b, c, d: (
        d.wait_event(a.record_event()),
        b.wait_event(d.record_event()),
    ),
}


@pytest.mark.parametrize("order", ORDERED.values(), ids=ORDERED)
@pytest.mark.parametrize(("first", "second"), [(write, write), (write, read), (read, write)])
def test_nothing_is_added_to_what_is_in_order(streams, array, added, order, first, second):
    a, b, *_ = streams
    first(array, a)
    later = order(*streams)
    later = later if isinstance(later, ab.Stream) else b
    second(array, later)
    second(array, later)
    assert added() == 0


@pytest.mark.parametrize(("first", "second"), [(write, write), (write, read), (read, write)])
def test_one_wait_is_added_once(streams, array, added, first, second):
    a, b, *_ = streams
    first(array, a)
    second(array, b)
    assert added() == 1
    second(array, b)
    assert added() == 0


PROGRAMS = {
    "reads, and views that share nothing, need no order": (
        "a reads x, b reads x, c writes x[::2] +2, c writes x[1::2], c writes x[::2]"
    ),
    "views that only interleave are told apart": (
        "a writes x[::2], b writes x[1::2], c reads x[3:4] +1, c reads x[::4] +1"
    ),
    "each stream is waited for": "a writes x[:1], b writes x[1:2], c writes x[2:3], d writes x +3",
    "what comes before another is not waited for twice": "a writes x[:4], b after a, b writes x[4:8], c reads x +1",
    "a wait keeps the record that it found": "a writes x, a marks e, a writes x, b after e, a marks e, b reads x +1",
    "each record of an event counts": "a writes x, a marks e, a writes x, a marks e, b after e, b reads x",
}


@each_program(PROGRAMS)
def test_a_program_adds_the_waits_that_it_says(streams, array, added, program):
    it = Program(streams[0].device, **dict(zip("abcd", streams, strict=True)))
    it.added, it.read = added, read
    it.write = lambda array, stream: stream.submit(int, writes=[array])
    it.run(program)


def test_one_stream_is_waited_for_once_for_all_arrays(streams, array, added):
    a, b, *_ = streams
    other = ab.zeros(16, "int32", stream=a)
    write(array, a)
    ab.copy(array, other, stream=b)
    assert added() == 1


def test_an_added_wait_counts_as_order(streams, array, added):
    a, b, c, _ = streams
    other = ab.zeros(16, "int32", stream=a)
    write(array, a)
    read(array, b)
    assert added() == 1
    read(other, b)
    c.wait_stream(b)
    write(array, c)
    write(other, c)
    assert added() == 0


def test_under_check_too_what_ran_unnoticed_is_waited_for(streams, array, added):
    a, b, *_ = streams
    with ab.hazards("off"):
        write(array, a)
    with ab.hazards("check"):
        write(array, b)
    assert added() == 1


@pytest.mark.parametrize("wait", ["stream", "event", "stream query", "event query", "numpy", "result", "device"])
def test_what_the_host_has_waited_for_is_in_order(devices_pair, streams, array, added, held, wait):
    a, b, *_ = streams
    write(array, a)
    future = a.submit(int, reads=[array])
    event = a.record_event()
    held.close()
    if wait == "numpy":
        array.numpy()
    elif wait == "result":
        future.result()
    elif wait == "device":
        devices_pair[0].synchronize()
    elif wait == "stream":
        a.synchronize()
    elif wait == "event":
        event.synchronize()
    elif wait == "stream query":
        while not a.query():
            pass
    else:
        while not event.query():
            pass
    with ab.hazards("check"):
        read(array, b)
    assert added() == 0


@pytest.mark.parametrize("asked", [ab.Stream.query, ab.Event.query])
def test_a_query_that_says_no_orders_nothing(streams, array, added, asked):
    a, b, *_ = streams
    write(array, a)
    assert not asked(a if asked is ab.Stream.query else a.record_event())
    read(array, b)
    assert added() == 1


def test_a_host_function_waits_for_no_later_use_of_what_it_reads(streams, array, held):
    a, b, *_ = streams
    write(array, a)
    future = a.submit(array.numpy, reads=[array])
    ab.fill(array, 2, stream=b)
    held.close()
    assert future.result(20).tolist() == [1] * 16


def test_a_host_function_knows_what_its_creator_knew(streams, array, held):
    a, b, c, _ = streams
    write(array, a)
    held.close()
    a.synchronize()

    def function():
        with ab.hazards("check"):
            write(array, c)

    b.submit(function).result(20)


def test_a_stream_that_is_used_again_knows_what_the_host_knows(streams, array, held):
    a, *_ = streams
    write(array, a)
    held.close()
    stream = ab.Stream(a.device)
    handle, other = stream.handle, ab.zeros(4, stream=stream)
    stream.synchronize()
    a.synchronize()
    write(other, stream)
    del stream, other
    with ab.hazards("check"):
        write(array, again(handle, device=a.device))


def again(handle, **options):
    """Make a stream that has the record of one that is gone, if its work ends in time."""
    for _ in range(100_000):
        stream = ab.Stream(**options)
        if stream.handle == handle:
            break
    return stream


def test_a_stream_that_is_used_again_knows_nothing_of_its_first_use(streams, array, held):
    a, *_ = streams
    held.close()
    with ab.hazards("check"):
        write(array, a)
        stream = ab.Stream(a.device)
        handle = stream.handle
        stream.wait_stream(a)
        del stream
        stream = again(handle, device=a.device)
        with pytest.raises(ab.RaceError):
            write(array, stream)


def test_what_the_host_reads_it_knows_with_all_that_came_before(streams, array, held):
    a, b, c, _ = streams
    other = ab.zeros(16, "int32", stream=b)
    held.close()
    with ab.hazards("check"):
        write(array, a)
        write(other, b)
        a.wait_stream(b)
        write(array, a)
        array.numpy()
        write(other, c)


@pytest.fixture
def legacy(devices_pair, held):
    held.close()
    device = devices_pair[0]
    device.synchronize()
    return ab.legacy_stream(device), *(ab.Stream(device, non_blocking=False) for _ in range(2))


def test_the_legacy_stream_is_in_order_with_blocking_ones(legacy, array, added):
    default, one, other = legacy
    with ab.testing.Gate(one):
        write(array, one)
        write(array, default)
        write(array, other)
        assert added() == 0


def test_what_a_blocking_stream_knew_is_not_lost_with_it(legacy, streams, array):
    default, *_ = legacy
    a, *_ = streams
    with ab.hazards("check"):
        write(array, a)
        stream = ab.Stream(a.device, non_blocking=False)
        handle = stream.handle
        stream.wait_stream(a)
        del stream
        again(handle, device=a.device, non_blocking=False)
        write(array, default)


def test_a_stream_with_the_record_of_a_blocking_one_is_in_no_order_with_the_legacy_stream(legacy, array):
    default, *_ = legacy
    with ab.hazards("check"):
        stream = ab.Stream(default.device, non_blocking=False)
        handle = stream.handle
        stream.wait_stream(default)
        del stream
        stream = again(handle, device=default.device)
        write(array, stream)
        with pytest.raises(ab.RaceError):
            write(array, default)


LOOKS = {
    "query": lambda default, one: default.query(),
    "wait for no record": lambda default, one: default.wait_event(ab.Event(device=default.device)),
    "refused": lambda default, one: refused(default),
}


def refused(default):
    stream = ab.Stream(default.device)
    array = ab.zeros(4, stream=stream)
    with ab.testing.Gate(stream), ab.hazards("check"), pytest.raises(ab.RaceError):
        write(array, default)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_enqueues_nothing_in_the_legacy_stream_orders_no_two_blocking_ones(legacy, array, added, look):
    default, one, other = legacy
    with ab.testing.Gate(one):
        write(array, one)
        look(default, one)
        write(array, other)
        assert added() == 1


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("look", [ab.Stream.query, ab.Stream.synchronize])
def test_a_wait_for_a_record_of_its_own_makes_no_order(legacy, array, added, blocking, look):
    default, one, _ = legacy
    held, waiting = (default, one) if blocking else (one, default)
    event, stream = waiting.record_event(), ab.Stream(default.device)
    waiting.synchronize()
    with ab.testing.Gate(held):
        write(array, held)
        waiting.wait_event(event)
        if blocking:
            look(waiting)
        write(array, stream)
        assert added() == 1


MARKS = {
    "record": ab.Stream.record_event,
    "wait": lambda default: default.wait_event(ab.Stream(default.device).record_event()),
}


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_a_record_and_a_wait_in_the_legacy_stream_are_operations(legacy, array, added, mark):
    default, one, other = legacy
    with ab.testing.Gate(one):
        write(array, one)
        mark(default)
        write(array, other)
        assert added() == 0
        assert not other.query()


@pytest.mark.parametrize("look", [ab.Stream.query, ab.Stream.synchronize])
def test_an_empty_blocking_stream_tells_nothing_of_the_legacy_one(legacy, array, added, look):
    default, one, _ = legacy
    stream = ab.Stream(default.device)
    with ab.testing.Gate(default):
        write(array, default)
        look(one)
        write(array, stream)
        assert added() == 1


def test_what_an_added_wait_gives_up(streams, array, held):
    """A wait for an array is for what its stream did up to there. On the CPU it is for no more than that.

    On CUDA it may be for all that the driver has of the stream when the wait is enqueued, so there only the result is
    sure. What is held the driver does not have.
    """
    a, b, *_ = streams
    write(array, a)
    with ab.testing.Gate(a):
        read(array, b)
        held.close()
        if a.device.kind == "cpu":
            b.synchronize()
    b.synchronize()
    assert array.numpy().tolist() == [1] * 16
