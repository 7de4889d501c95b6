"""Captures of several streams, which join by waiting, on one device and on several."""

import gc

import pytest

import anabranch as ab

from ..accesses import ready
from ..programs import Program
from .replays import assert_all, assert_edges, edges, joined, kinds, replays, replays_to


def _by_stream(before, after):
    after.wait_stream(before)


def _by_new_event(before, after):
    after.wait_event(before.record_event())


def _by_event(before, after):
    event = ab.Event(device=before.device)
    event.record(before)
    event.wait(after)


def _through_a_third(before, after):
    third = ab.Stream(after.device)
    third.wait_stream(before)
    after.wait_stream(third)


def _through_a_third_that_dies(before, after):
    _through_a_third(before, after)
    gc.collect()


WAITS = {
    "wait_stream": _by_stream,
    "wait_event": _by_new_event,
    "event.wait": _by_event,
    "a third stream": _through_a_third,
    "a third stream that is gone": _through_a_third_that_dies,
}
each_wait = pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)


@each_wait
def test_streams_join_by_waiting(wait, a, b, x, y, z):
    with ab.capture(a) as graph:
        ab.fill(x, 1, stream=a)
        wait(a, b)
        ab.fill(y, 2, stream=b)
        ab.fill(z, 3, stream=a)
        wait(b, a)
        ab.copy(x, y, stream=a)
    assert kinds(graph) == ["fill", "fill", "fill", "copy"]
    assert edges(graph) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    replays_to(graph, a, [x, y, z], 2, 2, 3)


def test_a_wait_covers_what_was_recorded_and_no_more(a, b, x):
    with ab.capture(a) as graph, ab.hazards("off"):
        ab.fill(x, 1, stream=a)
        event = a.record_event()
        ab.fill(x, 2, stream=a)
        b.wait_event(event)
        ab.fill(ready_in(b), 3, stream=b)
    first, second, *_, last = range(len(graph.nodes))
    assert (first, second) in edges(graph)
    assert not {(second, node) for node in range(second + 1, last + 1)} & edges(graph)


def ready_in(stream):
    return ab.empty(4, stream=stream)


PROGRAMS = {
    "one stream is one chain": ("a fills x 1, a fills x 2, a fills x 3, a fills x 4", "0>1 1>2 2>3", "x=4"),
    "recording again does not move a wait": (
        "a writes x, a marks e, b after e, a fills x 2, a marks e, b fills y 3",
        "0>1 0>2",
        "x=2 y=3",
    ),
    "a wait twice is one edge": ("a writes x, b after a, b after a, b after a, b fills y 2", "0>1", "x=1 y=2"),
    "a stream may be closed in the capture": (
        "a writes x, b after a, b fills y 2, b marks e, b closes, a after e, a fills y 3",
        "0>1 1>2",
        "x=1 y=3",
    ),
}


@pytest.mark.parametrize(("program", "order", "values"), PROGRAMS.values(), ids=PROGRAMS)
def test_waits_become_edges(device, program, order, values):
    it = Program(device)
    graph = it.capture(program)
    assert_edges(graph, order)
    replays(graph, it, values)


def test_an_event_that_was_recorded_outside_may_be_recorded_inside(a, b, x, y):
    event = b.record_event()
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        event.record(a)
        b.wait_event(event)
        ab.fill(y, 2, stream=b)
    assert edges(graph) == {(0, 1)}
    event.record(b)
    event.synchronize()
    assert event.query()


def test_an_event_that_was_never_recorded_is_complete(device, a, x):
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        a.wait_event(ab.Event(device=device))
        ab.fill(x, 2)
    assert edges(graph) == {(0, 1)}


def test_fork_and_join(device):
    a, arrays = ab.Stream(device), [ready(device) for _ in range(4)]
    with ab.capture(a) as graph:
        ab.fill(arrays[0], 1)
        with ab.fork(2) as branches:
            for branch, array in zip(branches, arrays[1:], strict=False):
                ab.fill(array, 2, stream=branch)
        ab.fill(arrays[3], 3)
    assert edges(graph) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    replays_to(graph, a, arrays, 1, 2, 2, 3)


def test_forks_nest(device):
    a, x = ab.Stream(device), [ready(device) for _ in range(6)]
    with ab.capture(a) as graph:
        ab.fill(x[0], 0)
        with ab.fork(2) as (b, c):
            ab.fill(x[1], 1, stream=b)
            with ab.fork(2, b) as (d, e):
                ab.fill(x[2], 2, stream=d)
                ab.fill(x[3], 3, stream=e)
            ab.fill(x[4], 4, stream=c)
        ab.fill(x[5], 5)
    assert edges(graph) == {(0, 1), (1, 2), (1, 3), (0, 4), (2, 5), (3, 5), (4, 5)}


def test_adjacent_forks_do_not_merge(device):
    a, x = ab.Stream(device), [ready(device) for _ in range(4)]
    with ab.capture(a) as graph:
        for number in 0, 2:
            with ab.fork(2) as (b, c):
                ab.fill(x[number], 1, stream=b)
                ab.fill(x[number + 1], 1, stream=c)
    assert edges(graph) == {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_a_fork_whose_branches_do_nothing_adds_nothing(a, x):
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        with ab.fork(3):
            pass
        ab.fill(x, 2)
    assert edges(graph) == {(0, 1)}


def test_an_error_in_a_fork_ends_the_capture(a, x):
    with pytest.raises(ZeroDivisionError), ab.capture(a), ab.fork(2) as (b, _):  # noqa: PT012
        ab.fill(x, 1, stream=b)
        raise ZeroDivisionError
    assert not a.is_capturing
    assert_all(x, 0)


@pytest.mark.parametrize("drop", [False, True], ids=["that stays", "that is gone"])
def test_a_branch_that_was_never_joined_is_joined_at_the_end(device, drop):
    a, x, y = ab.Stream(device), ready(device), ready(device)
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        (b,) = joined(device, a, 1)
        ab.fill(y, 2, stream=b)
        if drop:
            del b
    with ab.testing.Gate(a):
        graph.launch(a)
        event = a.record_event()
        assert not event.query()
    # Whoever comes after the replay comes after the branch.
    with ab.hazards("off"):
        event.synchronize()
        assert_all(y, 2)


def test_the_captured_stream_itself_may_be_dropped(device, x):
    with ab.capture(ab.Stream(device)) as graph:
        ab.fill(x, 1)
    gc.collect()
    replays_to(graph, None, [x], 1)


def test_many_streams_that_come_and_go_are_kept_apart(device):
    a, arrays = ab.Stream(device), [ready(device) for _ in range(30)]
    with ab.capture(a) as graph:
        ab.fill(arrays[0], 0)
        for number, array in enumerate(arrays[1:], 1):
            (b,) = joined(device, a, 1)
            ab.fill(array, number, stream=b)
            del b
    assert edges(graph) == {(0, number) for number in range(1, 30)}
    replays_to(graph, a, arrays, *range(30))


def test_waits_that_do_nothing_leave_no_trace_outside(device):
    """The order within a capture is not that outside."""
    a, b, x = ab.Stream(device), ab.Stream(device), ready(device)
    ab.fill(x, 1, stream=a)
    with ab.capture(a):
        b.wait_stream(a)
    with ab.hazards("check"):
        ab.fill(ready(device), 1, stream=a)
        y = ready(device)
        ab.fill(y, 1, stream=a)
        with ab.capture(a):
            b.wait_stream(a)
        with pytest.raises(ab.RaceError):
            ab.fill(y, 2, stream=b)


# Several devices


def test_a_fork_goes_to_several_devices(device, other_device):
    # Between two kinds of devices, copies can be captured of pinned memory.
    pinned = device.kind != other_device.kind
    x, y = (ab.zeros(8, device=each, pinned=pinned and each.kind == "cpu") for each in (device, other_device))
    a = ab.Stream(device)
    ab.synchronize()
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        with ab.fork(devices=[device, other_device]) as (_, there):
            ab.fill(y, 2, stream=there)
        ab.fill(x, 3, stream=a)
    assert [node.device for node in graph.nodes] == [device, other_device, device]
    assert edges(graph) == {(0, 1), (1, 2)}
    for value in 5, 6:
        ab.fill(x, value, stream=ab.Stream(device))
        replays_to(graph, a, [x, y], 3, 2)


def test_a_graph_of_two_devices_is_launched_on_either(device, other_device):
    a, x, y = ab.Stream(device), ready(device), ready(other_device)
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        (b,) = joined(other_device, a, 1)
        ab.fill(y, 2, stream=b)
    replays_to(graph, ab.Stream(other_device), [x, y], 1, 2)
    replays_to(graph, a, [x, y], 1, 2)


def test_events_go_between_devices(device, other_device):
    a, b, x, y = ab.Stream(device), ab.Stream(other_device), ready(device), ready(other_device)
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        b.wait_event(a.record_event())
        ab.fill(y, 2, stream=b)
        a.wait_event(b.record_event())
        ab.fill(x, 3)
    assert edges(graph) == {(0, 1), (1, 2)}
    replays_to(graph, a, [x, y], 3, 2)
