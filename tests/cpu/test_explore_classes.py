"""Exploration: how many classes of schedules a program has, and which of them fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import anabranch as ab
from anabranch.testing import explore

Program = Callable[[], None]


def streams(count: int) -> list[ab.Stream]:
    return [ab.Stream("cpu", name="abcdefgh"[number]) for number in range(count)]


def zeros(count: int = 4) -> ab.Array:
    """Return memory that every stream may use at once."""
    array = ab.zeros(count, device="cpu")
    ab.synchronize("cpu")
    return array


def writers(count: int) -> Program:
    def program() -> None:
        array = zeros()
        for number, stream in enumerate(streams(count)):
            ab.fill(array, number + 1, stream=stream)

    return program


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    with ab.hazards("off"):
        yield


@pytest.mark.parametrize(("count", "classes"), [(1, 1), (2, 2), (3, 6), (4, 24)])
def test_writes_in_conflict_run_in_every_order(count: int, classes: int) -> None:
    report = explore(writers(count))
    assert (report.ok, report.classes, report.runs, report.complete) == (True, classes, classes, True)


def test_independent_operations_are_one_run() -> None:
    def program() -> None:
        array = zeros(40)
        for number, stream in enumerate([ab.Stream("cpu") for _ in range(10)]):
            ab.fill(array[4 * number : 4 * number + 4], 1, stream=stream)

    report = explore(program)
    assert (report.classes, report.runs) == (1, 1)


def test_elements_that_alternate_are_independent() -> None:
    def program() -> None:
        array = zeros(8)
        a, b = streams(2)
        ab.fill(array[::2], 1, stream=a)
        ab.fill(array[1::2], 2, stream=b)

    assert explore(program).classes == 1


def test_readers_are_one_class() -> None:
    def program() -> None:
        array = zeros()
        for stream in streams(2):
            ab.copy(ab.empty(4, device="cpu", stream=stream), array, stream=stream)

    assert explore(program).classes == 1


def test_a_wait_is_order() -> None:
    def program() -> None:
        array = zeros()
        a, b = streams(2)
        ab.fill(array, 1, stream=a)
        b.wait_stream(a)
        ab.fill(array, 2, stream=b)
        assert array.numpy().tolist() == [2] * 4

    report = explore(program)
    assert report.ok
    assert report.classes == 1


def test_a_wait_of_the_host_is_order() -> None:
    def program() -> None:
        array = zeros()
        a, b = streams(2)
        ab.fill(array, 1, stream=a)
        a.synchronize()
        ab.fill(array, 2, stream=b)

    assert explore(program).classes == 1


def test_auto_orders_what_is_in_conflict() -> None:
    def program() -> None:
        ab.hazards("auto")
        array = zeros()
        a, b, c = streams(3)
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
        ab.fill(array, 3, stream=c)
        assert array.numpy().tolist() == [3] * 4

    report = explore(program)
    assert report.ok
    assert (report.classes, report.runs) == (1, 1)


def test_a_query_is_answered_both_ways() -> None:
    answers = set()

    def program() -> None:
        (a,) = streams(1)
        array = zeros()
        ab.fill(array, 1, stream=a)
        answers.add(a.query())

    report = explore(program)
    assert (report.classes, report.runs) == (2, 2)
    assert answers == {True, False}


def test_an_event_is_queried_both_ways() -> None:
    answers = []

    def program() -> None:
        a, b = streams(2)
        array = zeros()
        ab.fill(array, 1, stream=a)
        event = a.record_event()
        b.wait_event(event)
        ab.fill(array, 2, stream=b)
        answers.append((event.query(), b.query()))

    report = explore(program)
    assert sorted(answers) == [(False, False), (False, True), (True, False), (True, True)]
    assert (report.classes, report.runs) == (4, 4)


def test_a_loop_of_queries_ends() -> None:
    def program() -> None:
        (a,) = streams(1)
        array = zeros()
        ab.fill(array, 1, stream=a)
        while not a.query():
            pass

    report = explore(program)
    assert report.ok
    assert report.complete
    assert report.classes == 4


def test_the_legacy_stream_is_order() -> None:
    def program() -> None:
        array = zeros()
        a, b = (ab.Stream("cpu", non_blocking=False) for _ in range(2))
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=ab.legacy_stream("cpu"))
        ab.fill(array, 3, stream=b)
        assert array.numpy().tolist() == [3] * 4

    report = explore(program)
    assert report.ok
    assert report.classes == 1


def test_a_stream_that_is_gone_is_in_the_order_of_the_legacy_stream() -> None:
    """Whether its work was over before it went or not."""

    def program() -> None:
        a, b = streams(2)
        array, other = zeros(), zeros()
        ab.fill(array, 1, stream=a)
        gone = ab.Stream("cpu", non_blocking=False)
        gone.wait_stream(a)
        del gone
        ab.fill(other, 2, stream=b)
        b.query()
        ab.fill(array, 3, stream=ab.legacy_stream("cpu"))
        assert array.numpy()[0] == 3

    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (2, 2)


def double_buffer(waits: bool) -> Program:
    """Copy through two buffers on one stream, and use them on another."""

    def program() -> None:
        upload, work = streams(2)
        source = [np.full(4, number, np.float32) for number in range(3)]
        buffers = [zeros(), zeros()]
        results = [zeros() for _ in source]
        used = [ab.Event(device="cpu"), ab.Event(device="cpu")]
        for number, data in enumerate(source):
            buffer = buffers[number % 2]
            if waits:
                upload.wait_event(used[number % 2])
            ab.fill(buffer, float(data[0]), stream=upload)
            work.wait_stream(upload)
            ab.copy(results[number], buffer, stream=work)
            used[number % 2].record(work)
        ab.synchronize("cpu")
        assert [result.numpy()[0] for result in results] == [0, 1, 2]

    return program


def test_a_double_buffer_with_a_wait_missing_fails_and_replays() -> None:
    report = explore(double_buffer(waits=False))
    assert not report.ok
    assert isinstance(report.error, AssertionError)
    assert report.schedule is not None
    again = explore(double_buffer(waits=False), schedules=report.schedule)
    assert not again.ok
    assert isinstance(again.error, AssertionError)
    assert again.runs == 1
    assert again.schedule == report.schedule
    text = str(report)
    assert "fails" in text
    assert "passes" in text
    assert "◄" in text


def test_a_double_buffer_with_its_waits_passes() -> None:
    report = explore(double_buffer(waits=True))
    assert report.ok
    assert report.complete
    assert report.classes == 1


def test_what_is_left_of_an_earlier_run_changes_nothing() -> None:
    left: list[ab.Stream] = []

    def blocking() -> ab.Stream:
        return ab.Stream("cpu:0", non_blocking=False)

    def program() -> None:
        home = ab.Stream("cpu:0")
        array, other = (ab.zeros(4, stream=home) for _ in range(2))
        home.synchronize()
        for value in range(3):
            ab.fill(array, value, stream=blocking())
        left.clear()  # this one came first of those that the legacy stream comes after
        ab.legacy_stream("cpu:0").query()
        left.append(blocking())
        ab.fill(other, 1, stream=left[0])

    report = explore(program)
    assert report.ok, report.explain()
    assert report.complete
