"""Exploration: the nodes of a graph are operations of their own."""

from __future__ import annotations

import numpy as np
import pytest

import anabranch as ab
from anabranch.testing import Gate, explore

from .test_explore_classes import off, streams, zeros  # noqa: F401


@ab.kernel
def past_the_end(i, x: ab.InOut):  # type: ignore[no-untyped-def]
    x[i + 4] = 1.0


def branches(array: ab.Array, other: ab.Array, joined: bool) -> ab.Graph:
    """Capture two fills, in two branches or in one."""
    a, b = streams(2)
    with ab.capture(a) as graph:
        b.wait_stream(a)
        ab.fill(array, 1, stream=a)
        if joined:
            b.wait_stream(a)
        ab.fill(other, 2, stream=b)
        a.wait_stream(b)
    return graph


@pytest.mark.parametrize(("joined", "classes"), [(False, 2), (True, 1)])
def test_branches_of_a_graph_race(joined: bool, classes: int) -> None:
    def program() -> None:
        array = zeros()
        branches(array, array, joined).launch()
        results.add(array.numpy()[0])

    results: set[float] = set()
    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (classes, classes)
    assert results == ({2} if joined else {1, 2})


def test_a_race_within_a_graph_names_its_nodes() -> None:
    def program() -> None:
        array = zeros()
        branches(array, array, joined=False).launch()
        assert array.numpy()[0] == 2

    report = explore(program)
    assert not report.ok
    assert "node: fill" in str(report)
    assert not explore(program, schedules=report.schedule).ok


@pytest.mark.parametrize(("in_parallel", "classes"), [(False, 4), (True, 4)])
def test_a_replay_races_with_eager_work_node_by_node(in_parallel: bool, classes: int) -> None:
    def program() -> None:
        one, two = zeros(), zeros()
        (c,) = streams(1)
        branches(one, two, joined=not in_parallel).launch()
        ab.fill(one, 3, stream=c)
        ab.fill(two, 4, stream=c)
        ab.synchronize("cpu")
        results.append((int(one.numpy()[0]), int(two.numpy()[0])))

    results: list[tuple[int, int]] = []
    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (classes, classes)
    assert sorted(results) == [(1, 2), (1, 4), (3, 2), (3, 4)]


def test_replays_of_one_graph_never_overlap() -> None:
    def program() -> None:
        array = zeros()
        a, b = streams(2)
        with ab.capture(a) as graph:
            ab.fill(array, 1)
            ab.fill(array, 2)
        graph.launch(stream=a)
        graph.launch(stream=b)
        graph.launch(stream=b)
        b.synchronize()
        assert array.numpy()[0] == 2

    report = explore(program)
    assert report.ok, report
    assert report.classes == 1


def test_a_query_asks_about_the_end_of_a_graph() -> None:
    def program() -> None:
        one, two = zeros(), zeros()
        (c,) = streams(1)
        graph = branches(one, two, joined=False)
        graph.launch(stream=c)
        answers.append(c.query())

    answers: list[bool] = []
    report = explore(program)
    assert (report.ok, report.classes, report.runs) == (True, 2, 2)
    assert sorted(answers) == [False, True]


def test_a_function_of_a_graph_enqueues_and_waits() -> None:
    def program() -> None:
        array, seen = zeros(), []
        a, b, c = streams(3)

        def work() -> None:
            ab.fill(array, 7, stream=c)
            c.synchronize()
            seen.append(int(array.numpy()[0]))

        with ab.capture(a) as graph:
            b.wait_stream(a)
            a.submit(work)
            b.submit(work)
            a.wait_stream(b)
        graph.launch(stream=a)
        a.synchronize()
        assert seen == [7, 7]

    report = explore(program)
    assert report.ok, report


def test_a_branch_of_a_graph_is_one_operation() -> None:
    def program() -> None:
        flag, one, two = ab.full(1, 3, dtype=np.int32, device="cpu"), zeros(), zeros()
        ab.synchronize("cpu")
        a, b = streams(2)

        def both() -> None:
            ab.fill(one, 1)
            ab.fill(two, 2)

        with ab.capture(a) as graph:
            ab.run_if(flag, both)
        graph.launch(stream=a)
        ab.fill(one, 3, stream=b)
        ab.fill(two, 4, stream=b)
        ab.synchronize("cpu")
        results.append((int(one.numpy()[0]), int(two.numpy()[0])))

    results: list[tuple[int, int]] = []
    report = explore(program)
    assert report.ok, report
    assert sorted(results) == [(1, 2), (1, 4), (3, 4)]


def test_a_graph_in_a_graph_is_one_operation() -> None:
    def program() -> None:
        one, two = zeros(), zeros()
        (a,) = streams(1)
        inner = branches(one, two, joined=False)
        with ab.capture(a) as graph:
            inner.launch(stream=a)
            ab.fill(one, 5)
        graph.launch(stream=a)
        a.synchronize()
        assert (one.numpy()[0], two.numpy()[0]) == (5, 2)

    report = explore(program)
    assert (report.ok, report.classes) == (True, 1)


@pytest.mark.numba
def test_a_node_that_fails_fails_the_run_alone() -> None:
    def program() -> None:
        array = zeros()
        (a,) = streams(1)
        with ab.capture(a) as graph:
            ab.launch(past_the_end, 4, array)
            ab.fill(array, 1)
        graph.launch(stream=a)
        a.synchronize()

    for _ in range(2):
        report = explore(program)
        assert isinstance(report.error, ab.KernelError), report
        assert "past_the_end" in str(report.error)
    assert explore(lambda: zeros().numpy()).ok


def test_a_gate_holds_all_nodes() -> None:
    def program() -> None:
        array = zeros()
        (c,) = streams(1)
        graph = branches(array, array, joined=False)
        with Gate(c):
            graph.launch(stream=c)
            assert not c.query()
        c.synchronize()

    report = explore(program)
    assert (report.ok, report.classes, report.runs) == (True, 2, 2)
