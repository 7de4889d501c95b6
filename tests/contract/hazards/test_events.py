"""What events, scopes and copies between devices order, and what they do not, under `check`."""

import pytest

import anabranch as ab

from ..accesses import read, ready, streams, write


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


# Events


def test_an_event_covers_what_was_there_at_its_record(device):
    (a, b), array = streams(device), ready(device)
    read(array, a)
    event = a.record_event()
    read(array, a)
    b.wait_event(event)
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_many_streams_may_wait_for_one_event(device):
    (a, *others), array = streams(device, 6), ready(device)
    write(array, a)
    event = a.record_event()
    for other in others:
        other.wait_event(event)
        read(array, other)


def test_recording_again_takes_back_no_earlier_wait(device):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    event = a.record_event()
    b.wait_event(event)
    event.record(c)
    write(array, b)


def test_recording_again_loses_the_earlier_record(device):
    (a, b, c), x, y = streams(device, 3), ready(device), ready(device)
    write(x, a)
    write(y, b)
    event = a.record_event()
    event.record(b)
    with pytest.warns(RuntimeWarning, match="recorded again, on another stream"):
        c.wait_event(event)
    write(y, c)
    with pytest.raises(ab.RaceError):
        write(x, c)


def test_a_wait_does_not_follow_a_later_record(device):
    (a, b), array = streams(device), ready(device)
    event = a.record_event()
    b.wait_event(event)
    write(array, a)
    event.record(a)
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_an_event_never_recorded_orders_nothing(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    with pytest.warns(RuntimeWarning, match="never recorded"):
        b.wait_event(ab.Event(device=device))
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_an_event_made_anew_does_not_know_of_the_one_before(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    a.record_event().close()
    with pytest.warns(RuntimeWarning, match="never recorded"):
        b.wait_event(ab.Event(device=device))
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_a_wait_outlives_its_event(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    event = a.record_event()
    b.wait_event(event)
    event.close()
    write(array, b)


def test_order_outlives_the_stream_it_came_through(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    with ab.Stream(device) as between:
        between.wait_stream(a)
        event = between.record_event()
    between.close()
    b.wait_event(event)
    write(array, b)


def test_a_stream_made_after_one_was_closed_does_not_know_what_that_one_knew(device):
    a, array = ab.Stream(device), ready(device)
    write(array, a)
    for _ in range(10):
        other = ab.Stream(device)
        other.wait_stream(a)
        other.close()
        del other
        with pytest.raises(ab.RaceError):
            write(array, ab.Stream(device))


def test_work_of_a_closed_stream_races_too(device):
    array = ready(device)
    stream = ab.Stream(device)
    write(array, stream)
    stream.close()
    with pytest.raises(ab.RaceError):
        write(array, ab.Stream(device))


# Scopes


def test_a_stream_scope_makes_no_order(device):
    array = ready(device)
    with ab.Stream(device):
        ab.fill(array, 1)
    with ab.Stream(device), pytest.raises(ab.RaceError):
        ab.fill(array, 2)


@pytest.mark.parametrize("sync_exit", [False, True])
@pytest.mark.parametrize("sync_enter", [False, True])
def test_a_scoped_stream_orders_what_it_is_told_to(device, sync_enter, sync_exit):
    (outer, inner), array = streams(device), ready(device)

    def use():
        if sync_enter:
            ab.fill(array, 2)
        else:
            with pytest.raises(ab.RaceError):
                ab.fill(array, 2)
            ab.fill(other, 2)

    other = ready(device)
    with outer:
        ab.fill(array, 1)
        with ab.ScopedStream(inner, sync_enter=sync_enter, sync_exit=sync_exit):
            use()
        inside = array if sync_enter else other
        if sync_exit:
            ab.fill(inside, 3)
        else:
            with pytest.raises(ab.RaceError):
                ab.fill(inside, 3)


def test_branches_of_a_fork_start_after_their_parent_and_end_before_it(device):
    parent, array = ab.Stream(device), ready(device)
    with parent:
        ab.fill(array, 1)
        with ab.fork(2) as (a, b):
            write(array[:4], a)
            write(array[4:], b)
        ab.fill(array, 2)


def test_branches_of_a_fork_have_no_order_with_each_other(device):
    array = ready(device)
    with ab.fork(2) as (a, b):
        write(array, a)
        with pytest.raises(ab.RaceError):
            write(array, b)


# Several devices


def test_a_copy_between_devices_reads_on_one_and_writes_on_the_other(device, other_device):
    here, there = ab.Stream(device), ab.Stream(other_device)
    x, y = ready(device), ready(other_device)
    write(x, here)
    with pytest.raises(ab.RaceError) as caught:
        ab.copy(y, x, stream=there)
    assert (caught.value.kind, caught.value.first.stream, caught.value.second.stream) == ("RAW", here, there)
    there.wait_stream(here)
    ab.copy(y, x, stream=there)


def test_a_chain_may_go_through_another_device(device, other_device):
    (a, b), there, array = streams(device), ab.Stream(other_device), ready(device)
    write(array, a)
    there.wait_stream(a)
    b.wait_event(there.record_event())
    write(array, b)
