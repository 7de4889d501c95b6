"""Order within a capture: what the program leaves out is added as edges, reported, or left out."""

import pytest

import anabranch as ab

from ..accesses import PAIRS, each_pair, each_way, read, ready
from .replays import SIZE, assert_all, edges, here, joined, kinds

ACCESSES = {"read": read, "write": lambda array, stream: ab.fill(array, 1, stream=stream)}


def branches(device, stream, count=2):
    return joined(device, stream, count)


def test_missing_order_is_added_as_an_edge(device):
    stream, x, y = ab.Stream(device), ready(device), ready(device)
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(x, 1, stream=a)
        ab.fill(y, 2, stream=b)
        ab.copy(y, x, stream=b)
        ab.fill(x, 3, stream=a)
    assert edges(graph) == {(0, 2), (1, 2), (2, 3)}
    for _ in range(3):
        graph.launch(stream)
        assert_all(x, 3)
        assert_all(y, 1)


@each_way
@each_pair
def test_conflicts_are_in_order_under_auto(device, way, kind, first, second):
    stream, array = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        getattr(way, first)(array, a)
        getattr(way, second)(array, b)
    last = [node.index for node in graph.nodes if node.kind in ("fill", "copy", "host", "kernel")]
    assert (last[0], last[1]) in edges(graph)


def test_reads_get_no_edge(device):
    stream, array, (p, q) = ab.Stream(device), ready(device), (ready(device), ready(device))
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.copy(p, array, stream=a)
        ab.copy(q, array, stream=b)
    assert edges(graph) == set()


def test_parts_that_do_not_overlap_get_no_edge(device):
    stream, array = ab.Stream(device), ready(device, SIZE)
    with ab.capture(stream) as graph:
        a, b, c = branches(device, stream, 3)
        ab.fill(array[::2], 1, stream=a)
        ab.fill(array[1::2], 2, stream=b)
        ab.fill(array[2:4], 3, stream=c)
    assert edges(graph) == {(0, 2), (1, 2)}


def test_where_there_is_order_nothing_is_added(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        third = ab.Stream(device)
        third.wait_stream(a)
        b.wait_stream(third)
        ab.fill(array, 2, stream=b)
        ab.fill(ready_outside := array[:0], 1, stream=b)
        assert ready_outside.size == 0
    assert edges(graph) == {(0, 1)}


def test_order_that_others_imply_is_no_edge_of_its_own(device):
    """c comes after b, and b after a: no edge from a to c."""
    stream, x, y = ab.Stream(device), ready(device), ready(device)
    with ab.capture(stream) as graph:
        a, b, c = branches(device, stream, 3)
        ab.fill(x, 1, stream=a)
        ab.copy(y, x, stream=b)
        ab.fill(y, 2, stream=c)
        ab.fill(x, 3, stream=c)
    assert edges(graph) == {(0, 1), (1, 2), (2, 3)}


def test_a_writer_comes_after_all_readers(device):
    stream, array, results = ab.Stream(device), ready(device), [ready(device) for _ in range(4)]
    with ab.capture(stream) as graph:
        *readers, writer = branches(device, stream, 5)
        for reader, result in zip(readers, results, strict=True):
            ab.copy(result, array, stream=reader)
        ab.fill(array, 1, stream=writer)
    assert edges(graph) == {(number, 4) for number in range(4)}


def test_an_added_edge_covers_the_operation_and_not_what_comes_later(device):
    stream, x, y, z = ab.Stream(device), ready(device), ready(device), ready(device)
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(x, 1, stream=a)
        ab.fill(y, 2, stream=a)
        ab.copy(z, x, stream=b)
    assert edges(graph) == {(0, 1), (0, 2)}


def test_what_eager_work_did_is_no_part_of_the_order_within(device):
    outside, stream, array = ab.Stream(device), ab.Stream(device), ready(device)
    with ab.testing.Gate(outside):
        ab.fill(array, 1, stream=outside)
        with ab.capture(stream) as graph:
            ab.fill(array, 2)
        assert kinds(graph) == ["fill"]
    outside.synchronize()
    assert_all(array, 1)


def test_off_adds_nothing(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.hazards("off"), ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
        b.wait_stream(a)
        ab.fill(array, 3, stream=b)
    assert edges(graph) == {(0, 2), (1, 2)}


@each_pair
def test_check_raises_at_the_second_access_and_ends_the_capture(device, kind, first, second):
    stream, array = ab.Stream(device), ready(device)
    sinks = [ready(device), ready(device)]

    def access(what, at):
        if what == "read":
            ab.copy(sinks[at is b], array, stream=at)
        else:
            ab.fill(array, 1, stream=at)

    with ab.hazards("check"), pytest.raises(ab.RaceError) as caught, ab.capture(stream) as graph:  # noqa: PT012
        a, b = branches(device, stream)
        access(first, a)
        access(second, b)
        raise AssertionError
    assert caught.value.kind == kind
    assert (caught.value.first.access, caught.value.second.access) == PAIRS[kind]
    assert (caught.value.first.stream, caught.value.second.stream) == (a, b)
    for one in stream, a, b:
        assert not one.is_capturing
        ab.fill(array, 3, stream=one)
        one.synchronize()
    assert_all(array, 3)
    with pytest.raises(ab.CaptureError, match="not captured"):
        graph.launch(stream)


def test_a_race_tells_both_lines_and_what_mends_it(device):
    stream, array = ab.Stream(device, name="main"), ready(device)
    with ab.hazards("check"), pytest.raises(ab.RaceError) as caught, ab.capture(stream):  # noqa: PT012
        other = ab.Stream(device, name="other")
        other.wait_stream(stream)
        ab.fill(array, 1)
        line = here() - 1
        ab.fill(array, 2, stream=other)
    error = caught.value
    assert (error.first.file, error.first.line) == (__file__, line)
    assert (error.second.file, error.second.line) == (__file__, line + 2)
    assert ".wait_stream(" in error.fix


def test_a_race_that_is_swallowed_is_no_capture(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.hazards("check"), pytest.raises(ab.CaptureError, match="RaceError"), ab.capture(stream):  # noqa: PT012
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        with pytest.raises(ab.RaceError):
            ab.fill(array, 2, stream=b)
        assert not a.is_capturing


@pytest.mark.parametrize("wait", ["wait_stream", "event", "fork"])
def test_check_passes_what_is_in_order(device, wait):
    stream, array = ab.Stream(device), ready(device)
    with ab.hazards("check"), ab.capture(stream) as graph:
        ab.fill(array, 1)
        if wait == "fork":
            with ab.fork(2) as (a, b):
                ab.fill(array[:4], 2, stream=a)
                ab.fill(array[4:], 2, stream=b)
        else:
            a = ab.Stream(device)
            a.wait_stream(stream) if wait == "wait_stream" else a.wait_event(stream.record_event())
            ab.fill(array, 2, stream=a)
            stream.wait_stream(a) if wait == "wait_stream" else stream.wait_event(a.record_event())
        ab.fill(array, 3)
    graph.launch(stream)
    stream.synchronize()
    assert_all(array, 3)


def test_races_within_are_collected_and_the_graph_is_made(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.collect_races() as races, ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
    assert [race.kind for race in races] == ["WAW"]
    assert kinds(graph) == ["fill", "fill"]


def test_a_race_within_a_fork_and_its_join_is_none(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.hazards("check"), ab.capture(stream):
        for _ in range(3):
            with ab.fork(2) as (a, b):
                ab.fill(array[:4], 1, stream=a)
                ab.fill(array[4:], 1, stream=b)


def test_memory_that_was_allocated_in_another_branch_needs_order(device):
    stream = ab.Stream(device)
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        array = ab.empty(SIZE, stream=a)
        ab.fill(array, 1, stream=b)
    assert kinds(graph) == ["alloc", "fill"]
    assert edges(graph) == {(0, 1)}
    graph.launch(stream)
    assert_all(array, 1)


def test_order_between_devices_is_added(device, other_device):
    stream, x, y = ab.Stream(device), ready(device), ready(other_device)
    with ab.capture(stream) as graph:
        (other,) = branches(other_device, stream, 1)
        ab.fill(y, 2, stream=other)
        ab.copy(x, y, stream=stream) if device.kind == other_device.kind else ab.fill(x, 2)
        ab.fill(y, 3, stream=other)
    if device.kind == other_device.kind:
        assert (0, 1) in edges(graph)
    graph.launch(stream)
    assert_all(x, 2)
    assert_all(y, 3)
