"""A replay is one operation to the hazard engine: in order with eager work and with other replays."""

import pytest

import anabranch as ab

from ..accesses import each_order, read, ready, streams, write
from ..programs import Program, each_program
from .replays import assert_all, here

# What a graph does to an array, and what other work does to it.
GRAPHS = {"reads": read, "writes": write}


def graph_that(does, array):
    with ab.capture(ab.Stream(array.device)) as graph:
        does(array, ab.current_stream())
    return graph


CASES = {
    "RAW after eager": ("read", "write", "RAW"),
    "WAR after eager": ("write", "read", "WAR"),
    "WAW after eager": ("write", "write", "WAW"),
}
each_case = pytest.mark.parametrize(("of_graph", "eager", "kind"), CASES.values(), ids=CASES)
ACCESSES = {"read": read, "write": write}


@each_case
def test_a_replay_comes_after_eager_work_of_another_stream(of_graph, eager, kind, a, b, array):
    graph = graph_that(ACCESSES[of_graph], array)
    with ab.testing.Gate(a):
        ACCESSES[eager](array, a)
        graph.launch(b)
        assert not b.query()
    b.synchronize()


@each_case
def test_eager_work_of_another_stream_comes_after_a_replay(of_graph, eager, kind, a, b, array):
    graph = graph_that(ACCESSES[of_graph], array)
    with ab.testing.Gate(a):
        graph.launch(a)
        ACCESSES[eager](array, b)
        assert not b.query()
    b.synchronize()


def test_reads_need_no_order(a, b, array):
    graph = graph_that(read, array)
    with ab.testing.Gate(a):
        graph.launch(a)
        read(array, b)
        assert b.query() or not b.synchronize()
        assert not a.query()


def test_replays_of_different_graphs_are_in_order_by_what_they_access(a, b, x, y):
    first, second, third = graph_that(write, x), graph_that(read, x), graph_that(write, y)
    with ab.testing.Gate(a):
        first.launch(a)
        third.launch(b)
        b.synchronize()
        second.launch(b)
        assert not b.query()
    b.synchronize()


def test_parts_of_an_array_are_told_apart(a, b, array):
    graph = graph_that(write, array[:4])
    with ab.testing.Gate(a):
        graph.launch(a)
        write(array[4:], b)
        b.synchronize()
        write(array[3:5], b)
        assert not b.query()


def test_what_is_beside_a_strided_view_is_not_written(device):
    """One write and one read of neighbouring bytes stay a write and a read."""
    (a, b), array = streams(device), ready(device)
    with ab.capture(a) as graph:
        read(array[4:], a)
        write(array[:4], a)
    with ab.testing.Gate(a):
        graph.launch(a)
        read(array[4:], b)
        b.synchronize()


@each_case
def test_a_replay_without_order_is_a_race(of_graph, eager, kind, a, b, array):
    graph = graph_that(ACCESSES[of_graph], array)
    with ab.hazards("check"):
        ACCESSES[eager](array, a)
        with pytest.raises(ab.RaceError) as caught:
            graph.launch(b)
        line = here() - 1
    assert (caught.value.kind, caught.value.first.stream, caught.value.second.stream) == (kind, a, b)
    assert (caught.value.second.file, caught.value.second.line) == (__file__, line)
    assert graph.replays == 0


@each_case
def test_eager_work_without_order_to_a_replay_is_a_race(of_graph, eager, kind, a, b, array):
    graph = graph_that(ACCESSES[of_graph], array)
    with ab.hazards("check"):
        graph.launch(a)
        line = here() - 1
        with pytest.raises(ab.RaceError) as caught:
            ACCESSES[eager](array, b)
    assert caught.value.kind == {"RAW": "WAR", "WAR": "RAW", "WAW": "WAW"}[kind]
    assert (caught.value.first.file, caught.value.first.line) == (__file__, line)
    assert (caught.value.first.stream, caught.value.second.stream) == (a, b)


PROGRAMS = {
    "replays of one graph are in order without a wait": "a launches wx, b launches wx, b writes x",
    "after the replay before there is order with what that came after": (
        "a writes x, a launches rx, b launches rx, b writes x"
    ),
    "a refused launch changes no order": (
        "a writes x, b launches wx !, a writes y, b writes y !, b after a, b launches wx"
    ),
}


@each_program(PROGRAMS)
def test_a_program_races_where_it_says(device, program):
    with ab.hazards("check"):
        Program(device).run(program)


@each_order
def test_a_replay_in_order_is_no_race(order, a, b, array):
    with ab.hazards("check"):
        write(array, a)
        graph = graph_that(write, array)  # a capture is no access
        order(a, b)
        graph.launch(b)
        order(b, a)
        write(array, a)


def test_a_replay_unchecked_comes_before_one_that_is_checked(a, b, array):
    graph = graph_that(write, array)
    with ab.testing.Gate(a):
        graph.launch(a)
        with ab.hazards("check"):
            graph.launch(b)
        assert not b.query()
    b.synchronize()


def test_races_of_replays_are_collected(a, b, array):
    graph = graph_that(write, array)
    with ab.collect_races() as races:
        write(array, a)
        graph.launch(b)
    assert [race.kind for race in races] == ["WAW"]
    assert graph.replays == 1


def test_numpy_waits_for_the_replay(stream, array):
    graph = graph_that(write, array)
    for value in 0, 5:
        ab.fill(array, value, stream=stream)
        graph.launch(stream)
        assert_all(array, 1)


def test_an_open_view_is_in_order_with_a_replay(device):
    if device.kind != "cpu":
        pytest.skip("the host has no view of a GPU's memory")
    stream, array = ab.Stream(device), ready(device)
    graph = graph_that(write, array)
    with ab.hazards("check"):
        graph.launch(stream)
        with pytest.raises(ab.RaceError) as caught:
            array.host().__enter__()
        assert caught.value.kind == "HOST"
        stream.synchronize()
        with array.host() as view:
            assert view.tolist() == [1] * 8


def test_no_mode_lets_memory_go_while_a_replay_uses_it(device):
    for mode in "auto", "check", "off":
        with ab.hazards(mode):
            (a, b), array, result = streams(device), ready(device, 1000), ready(device, 1000)
            with ab.capture(a) as graph:
                ab.copy(result, array)
            ab.fill(array, 7, stream=a)
            with ab.testing.Gate(a):
                graph.launch(a)
                del array, graph
                others = [ab.full(1000, -1, "float32", stream=b) for _ in range(10)]
                b.synchronize()
            a.synchronize()
            assert_all(result, 7)
            assert len(others) == 10


def test_each_byte_of_a_graph_counts_as_what_the_nodes_do_to_it(device, a, b):
    array = ready(device, 40)
    with ab.capture(a) as graph:
        first, second = ab.empty(10, "float32"), ab.empty(10, "float32")
        ab.copy(first, array[0:10])
        ab.fill(array[5:15], 1)
        ab.copy(second, array[20:30])
    with ab.hazards("check"), ab.testing.Gate(a):
        graph.launch(a)
        read(array[0:5], b)
        write(array[15:20], b)
        for does, part in ((write, array[0:1]), (read, array[5:6]), (read, array[14:15]), (write, array[29:30])):
            with pytest.raises(ab.RaceError):
                does(part, b)
    a.synchronize()


def test_a_graph_accesses_the_columns_that_its_nodes_do(device, a, b):
    plane = ab.zeros((6, 24), device=device)
    ab.synchronize(device)
    with ab.capture(a) as graph:
        ab.fill(plane[:, 0], 1)
        ab.copy(plane[:, 1], plane[:, 2])
        ab.fill(plane[:, 1], 3)
    with ab.hazards("check"), ab.testing.Gate(a):
        graph.launch(a)
        write(plane[:, 3:], b)
        read(plane[:, 2], b)
        for does, part in ((read, plane[:, 0]), (read, plane[1:3, 1]), (write, plane[:, 2]), (write, plane[5])):
            with pytest.raises(ab.RaceError):
                does(part, b)
    a.synchronize()
    with ab.testing.Gate(a):
        graph.launch(a)
        write(plane[:, 3:], b)
        b.synchronize()
        read(plane[:, 1], b)
        assert not b.query()


def test_a_graph_of_many_columns_accesses_all_that_lies_between_some(device, a, b):
    plane = ab.zeros((6, 24), device=device)
    ab.synchronize(device)
    with ab.capture(a) as graph:
        for column in range(0, 24, 2):
            ab.fill(plane[:, column], 1)
    with ab.hazards("check"), ab.testing.Gate(a):
        graph.launch(a)
        for column in range(0, 24, 2):
            with pytest.raises(ab.RaceError):
                read(plane[:, column], b)
    a.synchronize()
