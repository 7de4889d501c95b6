"""Exploration: limits, replays, random schedules, deadlocks and programs that are not repeatable."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable

import pytest

import anabranch as ab
from anabranch.testing import Gate, explore, fail

from .test_explore_classes import off, streams, writers, zeros  # noqa: F401


def test_a_limit_leaves_the_rest() -> None:
    report = explore(writers(4), limit=5)
    assert (report.ok, report.runs, report.complete) == (True, 5, False)


def test_a_timeout_leaves_the_rest() -> None:
    report = explore(writers(8), timeout=0.05)
    assert report.ok, report.explain()
    assert not report.complete


def test_random_schedules_state_their_bound() -> None:
    report = explore(writers(3), schedules=20, seed=4)
    assert (report.ok, report.runs, report.complete) == (True, 20, True)
    assert explore(writers(4), schedules=400, seed=4).classes == explore(writers(4)).classes == 24
    assert "at least" in str(report)


def test_random_schedules_find_a_race() -> None:
    def program() -> None:
        array = zeros()
        a, b = streams(2)
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
        assert array.numpy()[0] == 2

    one = explore(program, schedules=50, seed=1)
    two = explore(program, schedules=50, seed=1)
    assert not one.ok
    assert (one.schedule, one.runs) == (two.schedule, two.runs)
    assert one.schedule is not None
    assert not explore(program, schedules=one.schedule).ok


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "version"),
        ("x9-1", "version 'x1'"),
        ("x1-", "number of its choices is missing"),
        ("x1-!", "'!' is no number"),
        ("x1-3-0.0", "not the first"),
        ("x1-1-0.1-0.1", "more choices than it has"),
    ],
)
def test_a_bad_schedule_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wrong)):
        explore(writers(2), schedules=text)


def test_a_schedule_of_another_program_diverges() -> None:
    for text, came_to in (("x1-2-0.1", "its end"), ("x1-2-0.2-0.5", "fill in"), ("x1-1-0.1", "fill in")):
        report = explore(writers(1 if came_to == "its end" else 3), schedules=text)
        assert not report.ok
        assert f"of another program: after its choices, this one came to {came_to}" in str(report.error)


def test_a_program_that_changes_is_not_repeatable() -> None:
    calls = []

    def program() -> None:
        calls.append(1)
        array, other = zeros(), zeros()
        a, b = streams(2)
        ab.fill(array, 1, stream=a)
        ab.fill(array if len(calls) != 2 else other, 2, stream=b)

        for value in range(100 if len(calls) == 2 else 0):
            ab.fill(array, value, stream=a)
            ab.fill(array, value, stream=b)

    report = explore(program)
    assert (report.ok, report.runs, report.classes) == (False, 2, 1)
    assert "not repeatable" in str(report.error)
    assert "fill" in str(report.error)


def test_a_gate_that_nobody_opens_is_a_deadlock() -> None:
    def program() -> None:
        (a,) = streams(1)
        Gate(a)
        array = zeros()
        ab.fill(array, 1, stream=a)
        a.synchronize()

    report = explore(program)
    assert not report.ok
    assert "deadlock" in str(report.error)
    assert "gate" in str(report.error)
    assert "test_explore_report.py" in str(report.error)


def test_a_gate_left_closed_is_a_deadlock() -> None:
    gates = []

    def program() -> None:
        (a,) = streams(1)
        gates.append(Gate(a))

    report = explore(program)
    assert not report.ok
    assert "deadlock" in str(report.error)


def test_a_gate_that_is_opened_passes() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()
        with Gate(a):
            ab.fill(array, 1, stream=a)
            ab.fill(array, 2, stream=b)
            b.synchronize()
        a.synchronize()
        assert array.numpy()[0] == 1

    report = explore(program)
    assert report.ok, report.explain()
    assert report.classes == 1


def test_an_operation_that_fails_is_a_failure() -> None:
    def program() -> None:
        (a,) = streams(1)
        fail(a, "on request")

    report = explore(program)
    assert not report.ok
    assert "on request" in str(report.error)


@pytest.mark.parametrize("stream", [ab.legacy_stream, ab.per_thread_stream, ab.Stream])
def test_what_fails_in_a_run_fails_that_run_alone(stream: Callable[[str], ab.Stream]) -> None:
    kept = stream("cpu")

    def program() -> None:
        array = zeros()
        (a,) = streams(1)
        ab.fill(array, 1, stream=kept)
        ab.fill(array, 2, stream=a)
        ab.synchronize("cpu")
        if array.numpy()[0] == 1:
            fail(kept, "in one run of two")
            ab.synchronize("cpu")

    report = explore(program)
    assert "in one run of two" in str(report.error)
    assert (report.classes, report.runs) == (2, 2)
    assert "passes" in str(report)
    kept.synchronize()
    assert explore(kept.synchronize).ok


def test_what_failed_before_an_exploration_stays_failed() -> None:
    (kept,) = streams(1)
    fail(kept, "long before")
    assert "long before" in str(explore(kept.synchronize).error)
    with pytest.raises(ab.KernelError, match="long before"):
        kept.synchronize()
    del kept
    gc.collect()  # the error refers to frames that refer to the stream


def test_streams_and_modes_are_set_back() -> None:
    before = ab.current_stream("cpu")

    def program() -> None:
        ab.hazards("check")
        ab.Stream("cpu").use()

    assert explore(program).ok
    assert ab.current_stream("cpu") == before


def test_ctrl_c_ends_with_what_is_known() -> None:
    runs = []

    def program() -> None:
        runs.append(1)
        if len(runs) == 3:
            raise KeyboardInterrupt
        writers(3)()

    report = explore(program)
    assert (report.ok, report.runs, report.complete, report.interrupted) == (True, 2, False, True)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="fn is a function"):
        explore(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="schedules is"):
        explore(writers(1), schedules=1.5)  # type: ignore[arg-type]
    for number in (0, 2**64):
        with pytest.raises(ValueError, match="at least 1 and below"):
            explore(writers(1), schedules=number)
    with pytest.raises(ValueError, match="limit"):
        explore(writers(1), limit=0)
    with pytest.raises(ValueError, match="timeout"):
        explore(writers(1), timeout=-1)


def test_no_collection_of_garbage_runs_by_itself():
    enabled = []
    report = ab.testing.explore(lambda: enabled.append(gc.isenabled()))
    assert report.complete
    assert enabled == [False]
    assert gc.isenabled()
