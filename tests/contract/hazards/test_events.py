"""What events, scopes and copies between devices order, and what they do not, under `check`."""

import inspect

import pytest

import anabranch as ab

from ..accesses import ready, streams, write


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


# Events


def test_recording_again_loses_the_earlier_record(a, b, c, x, y):
    write(x, a)
    write(y, b)
    event = a.record_event()
    event.record(b)
    with pytest.warns(RuntimeWarning, match="recorded again, on another stream"):
        c.wait_event(event)
    write(y, c)
    with pytest.raises(ab.RaceError):
        write(x, c)


@pytest.mark.parametrize("one_before", [False, True])
def test_an_event_never_recorded_orders_nothing(device, one_before, a, b, array):
    write(array, a)
    if one_before:  # which the new one does not know of
        a.record_event().close()
    with pytest.warns(RuntimeWarning, match="never recorded") as warned:
        b.wait_event(ab.Event(device=device))
    assert (warned[0].filename, warned[0].lineno) == (__file__, inspect.currentframe().f_lineno - 1)
    with pytest.raises(ab.RaceError):
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


# Scopes


def test_a_stream_scope_makes_no_order(device, array):
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


def test_branches_of_a_fork_have_no_order_with_each_other(array):
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
