"""Order within a capture: what the program leaves out is added as edges, reported, or left out."""

import pytest

import anabranch as ab

from ..accesses import PAIRS, each_pair, each_way, read, ready
from ..programs import Program
from .replays import SIZE, assert_all, assert_edges, edges, here, joined, kinds, replays

ACCESSES = {"read": read, "write": lambda array, stream: ab.fill(array, 1, stream=stream)}


def branches(device, stream, count=2):
    return joined(device, stream, count)


# What the branches a to e of a capture do, which edges come of it, and what is in the arrays after each launch.
PROGRAMS = {
    "missing order is added": ("a fills x 1, b fills y 2, b copies x y, a fills x 3", "0>2 1>2 2>3", "x=3 y=1"),
    "reads get no edge": ("a copies x y, b copies x z", "", ""),
    "parts that do not overlap get no edge": ("a writes x[::2], b writes x[1::2], c writes x[2:4]", "0>2 1>2", "x=1"),
    "where there is order nothing is added": ("a fills x 2, d after a, b after d, b writes x", "0>1", "x=1"),
    # c comes after b, and b after a: no edge from a to c.
    "order that others imply is no edge of its own": (
        "a fills x 1, b copies x y, c fills y 2, c fills x 3",
        "0>1 1>2 2>3",
        "x=3 y=2",
    ),
    "a writer comes after all readers": (
        "a copies x u, b copies x v, c copies x y, d copies x z, e writes x",
        "0>4 1>4 2>4 3>4",
        "x=1",
    ),
    "an added edge covers the operation and not what comes later": (
        "a fills x 1, a fills y 2, b copies x z",
        "0>1 0>2",
        "z=1",
    ),
}


@pytest.mark.parametrize(("program", "order", "values"), PROGRAMS.values(), ids=PROGRAMS)
def test_order_is_added_as_edges(device, program, order, values):
    it = Program(device)
    graph = it.capture(program, joined="abce" if "d after" in program else "abcde")
    assert_edges(graph, order)
    for _ in range(3):
        replays(graph, it, values)


def test_off_adds_nothing(device):
    with ab.hazards("off"):
        graph = Program(device).capture("a writes x, b writes x, b after a, b writes x", joined="ab")
    assert_edges(graph, "0>2 1>2")


@each_way
@each_pair
def test_conflicts_are_in_order_under_auto(device, way, kind, first, second, stream, array):
    with ab.capture(stream) as graph:
        a, b = branches(device, stream)
        getattr(way, first)(array, a)
        getattr(way, second)(array, b)
    last = [node.index for node in graph.nodes if node.kind in ("fill", "copy", "host", "kernel")]
    assert (last[0], last[1]) in edges(graph)


def test_what_eager_work_did_is_no_part_of_the_order_within(device):
    outside, stream, array = ab.Stream(device), ab.Stream(device), ready(device)
    with ab.testing.Gate(outside):
        ab.fill(array, 1, stream=outside)
        with ab.capture(stream) as graph:
            ab.fill(array, 2)
        assert kinds(graph) == ["fill"]
    outside.synchronize()
    assert_all(array, 1)


@each_pair
def test_check_raises_at_the_second_access_and_ends_the_capture(device, kind, first, second, stream, array):
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


def test_a_race_that_is_swallowed_is_no_capture(device, stream, array):
    with ab.hazards("check"), pytest.raises(ab.CaptureError, match="RaceError"), ab.capture(stream):  # noqa: PT012
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        with pytest.raises(ab.RaceError):
            ab.fill(array, 2, stream=b)
        assert not a.is_capturing


@pytest.mark.parametrize("wait", ["wait_stream", "event", "fork"])
def test_check_passes_what_is_in_order(device, wait, stream, array):
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


def test_races_within_are_collected_and_the_graph_is_made(device, stream, array):
    with ab.collect_races() as races, ab.capture(stream) as graph:
        a, b = branches(device, stream)
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
    assert [race.kind for race in races] == ["WAW"]
    assert kinds(graph) == ["fill", "fill"]


def test_a_race_within_a_fork_and_its_join_is_none(stream, array):
    with ab.hazards("check"), ab.capture(stream):
        for _ in range(3):
            with ab.fork(2) as (a, b):
                ab.fill(array[:4], 1, stream=a)
                ab.fill(array[4:], 1, stream=b)


def test_memory_that_was_allocated_in_another_branch_needs_order(device, stream):
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
