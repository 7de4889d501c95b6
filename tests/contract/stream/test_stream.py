"""Streams: construction, order, waits."""

import pytest

import anabranch as ab

from ..programs import Program, each_program

# -- construction and attributes --


def test_defaults(device):
    stream = ab.Stream()
    assert (stream.device, stream.priority, stream.non_blocking) == (device, 0, True)
    assert (stream.closed, stream.is_capturing) == (False, False)


def test_a_stream_belongs_to_the_device_given(other_device):
    assert ab.Stream(other_device).device is other_device
    assert ab.Stream(device=other_device.alias).device is other_device


@pytest.mark.parametrize("non_blocking", [True, False])
def test_non_blocking_is_kept(non_blocking):
    assert ab.Stream(non_blocking=non_blocking).non_blocking is non_blocking


def test_a_name_is_kept_and_shown():
    stream = ab.Stream(name="upload")
    assert stream.name == "upload"
    assert "upload" in repr(stream)


def test_repr_shows_the_device(device):
    assert device.alias in repr(ab.Stream())


def test_everything_but_the_device_is_given_by_name(device):
    with pytest.raises(TypeError):
        ab.Stream(device, 0)


def test_every_priority_in_range_is_kept(device):
    lowest, highest = device.priority_range
    for priority in range(highest, lowest + 1):
        assert ab.Stream(priority=priority).priority == priority


def test_priority_is_clamped_to_the_range_of_the_device(device):
    assert ab.Stream(priority=1000).priority == device.priority_range[0]
    assert ab.Stream(priority=-1000).priority == device.priority_range[1]


def test_priorities_change_no_order_that_was_asked_for(device):
    lowest, highest = device.priority_range
    low, high, done = ab.Stream(priority=lowest), ab.Stream(priority=highest), []
    with ab.testing.Gate(low):
        low.submit(done.append, "low")
        high.wait_stream(low)
        high.submit(done.append, "high")
    high.synchronize()
    assert done == ["low", "high"]


def test_handle_is_an_int_of_its_own():
    a, b = ab.Stream(), ab.Stream()
    assert isinstance(a.handle, int)
    assert a.handle != b.handle


# -- query and synchronize --


def test_a_new_stream_has_finished():
    stream = ab.Stream()
    assert stream.query() is True
    assert stream.synchronize() is None


def test_query_and_synchronize(enqueue):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    assert stream.query() is False
    gate.open()
    stream.synchronize()
    assert stream.query() is True


def test_synchronize_waits_for_work_that_the_host_has_to_release():
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    work = stream.submit(int)
    ab.Stream().submit(gate.open)  # needs the interpreter, which this thread gives up once it waits
    stream.synchronize()
    assert work.done()


def test_synchronizing_a_stream_waits_for_no_other(other_device):
    one, two = ab.Stream(), ab.Stream(other_device)
    with ab.testing.Gate(one), ab.testing.Gate(two):
        ab.Stream().synchronize()
        assert not one.query()
        assert not two.query()


def test_a_stream_is_in_order():
    stream, done = ab.Stream(), []
    for index in range(100):
        stream.submit(done.append, index)
    stream.synchronize()
    assert done == list(range(100))


def test_operations_of_every_kind_are_in_order():
    stream = ab.Stream()
    with ab.testing.Gate(stream):
        a, b = ab.zeros(1000, stream=stream), ab.zeros(1000, stream=stream)
        for value in range(20):
            ab.fill(a, value, stream=stream)
            ab.copy(b, a, stream=stream)
            ab.fill(a, -1, stream=stream)
            stream.submit(int)
        total = stream.submit(lambda: b.numpy().sum())
    assert total.result(10) == 19 * 1000


def test_streams_have_no_order_of_their_own():
    a, b = ab.Stream(), ab.Stream()
    with ab.testing.Gate(a):
        b.submit(int).result(10)
        assert not a.query()


# -- waits --

WAIT = {
    "wait_stream": lambda later, earlier: later.wait_stream(earlier),
    "wait_event": lambda later, earlier: later.wait_event(earlier.record_event()),
    "event.wait": lambda later, earlier: earlier.record_event().wait(later),
}
wait_each_way = pytest.mark.parametrize("wait", WAIT.values(), ids=WAIT)


def starts_after(earlier, later, wait):
    done = []
    with ab.testing.Gate(earlier):
        earlier.submit(done.append, "earlier")
        assert wait(later, earlier) is None
        assert not later.query()
        later.submit(done.append, "later")
    later.synchronize()
    return done == ["earlier", "later"]


@wait_each_way
def test_a_stream_that_waits_starts_after_the_other(wait):
    assert starts_after(ab.Stream(), ab.Stream(), wait)


@wait_each_way
def test_a_stream_waits_across_devices(wait, other_device):
    assert starts_after(ab.Stream(), ab.Stream(other_device), wait)


WAITS = {
    "a wait covers what was enqueued before it": "b after a, a stops, b works, b finishes, a waits",
    "a wait holds nothing enqueued before it": "a stops, b works, b marks e, b after a, e finishes, a waits",
    "waits are transitive": "a stops, b after a, c after b, c waits, a goes, c finishes, host asks a",
    "a stream may wait for several": (
        "a stops, b stops, c stops, d after a, d after b, d after c,"
        " d waits, a goes, d waits, b goes, d waits, c goes, d finishes"
    ),
    "several streams may wait for one": "a stops, b after a, c after a, d after a, b waits, c waits, d waits",
    "a stream that waits for itself goes on": "a works, a after a, a works, a finishes",
}


@wait_each_way
@each_program(WAITS)
def test_a_wait_holds_what_it_says(device, wait, program):
    Program(device, follow=wait).run_to_the_end(program)


def test_two_streams_may_wait_for_each_other_in_turn():
    a, b, done = ab.Stream(), ab.Stream(), []
    with ab.testing.Gate(a):
        for index in range(0, 100, 2):
            a.submit(done.append, index)
            b.wait_stream(a)
            b.submit(done.append, index + 1)
            a.wait_stream(b)
    a.synchronize()
    assert done == list(range(100))


@pytest.mark.parametrize("method", ["wait_stream", "wait_event", "record_event"])
def test_an_argument_of_another_kind_is_a_type_error(method):
    stream = ab.Stream()
    wrong = ab.Event() if method == "wait_stream" else ab.Stream()
    with pytest.raises(TypeError):
        getattr(stream, method)(wrong)
