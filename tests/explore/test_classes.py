"""The number of classes is exact: an enumeration that shares nothing with the library comes to the same.

ANABRANCH_EXAMPLES=1000000 runs a million programs, from seed ANABRANCH_FIRST_SEED on.
"""

import random
from collections import Counter
from itertools import islice

import pytest

import anabranch as ab

from .program import random_program
from .running import Run, for_each_program
from .schedules import DeadlockError, classes, every_schedule, first_node, in_program_order, outcomes

pytestmark = [
    *(pytest.mark.numba, pytest.mark.timeout(0)),
    pytest.mark.filterwarnings("ignore:.*recorded:RuntimeWarning"),  # what waits for an event that is not may mean to
]

MOST_SCHEDULES = 1000


def explored(program, mode="off", **options):
    """Explore a program under a mode of hazards; return the report, and how often each end was met."""
    ends = Counter()

    def fn():
        with ab.hazards(mode):
            run = Run(program)
            answers = run.steps()
            ends[answers, run.contents()] += 1

    return ab.testing.explore(fn, **options), ends


def test_each_class_is_run_once():
    def check(program, expected):
        report, ends = explored(program)
        assert report.ok, report
        assert report.complete
        assert (report.classes, report.runs) == (len(expected), len(expected))
        assert ends == Counter(expected)

    for_each_program(250, check)


@pytest.mark.parametrize("seed", [240043, 451725, 474573, 540017])
def test_each_class_is_run_though_an_earlier_run_had_the_same_pair(seed):
    """Some of their classes are found only if a pair is planned for in each run that has it."""
    if len(ab.devices("cpu")) < 2:
        pytest.skip("there is only one CPU device")
    program = random_program(random.Random(seed), 8)
    expected = outcomes(program)
    report, ends = explored(program)
    assert (report.ok, report.complete, report.classes, report.runs) == (True, True, len(expected), len(expected))
    assert ends == Counter(expected)


def test_with_added_order_only_the_answers_differ():
    def check(program, expected):
        assert all(end == in_program_order(program, answers) for answers, end in expected)
        report, ends = explored(program, "auto")
        assert report.ok, report
        assert (report.classes, report.runs, report.complete) == (len(expected), len(expected), True)
        assert ends == Counter(expected)

    for_each_program(500, check, added=True)


def test_what_gets_stuck_is_a_deadlock():
    stuck = 0
    for seed in range(1000):
        program = random_program(random.Random(seed))
        try:
            classes(program)
        except DeadlockError:
            report, _ = explored(program)
            assert not report.ok, f"seed {seed}\n{program}"
            assert "deadlock" in str(report.error).lower(), f"seed {seed}\n{program}"
            stuck += 1
    assert stuck > 10


def test_a_failure_is_found_where_a_class_has_it():
    """What the classes come to is compared with program order: exploration fails if and only if one differs.

    And `check` reports a race then, for nothing else makes a difference. Without a race there is one class for each
    way to answer the queries; with one there are more, unless a gate, which counts as no order, decides.
    """

    def check(program, expected):
        def fn():
            with ab.hazards("off"):
                run = Run(program)
                answers = run.steps()
                assert run.contents() == in_program_order(program, answers)

        def checked():
            with ab.collect_races() as races:
                Run(program).steps()
            found.extend(races)

        found = []
        differs = any(end != in_program_order(program, answers) for answers, end in expected)
        report = ab.testing.explore(fn)
        assert report.ok is not differs, report
        if differs:
            assert isinstance(report.error, AssertionError)
            assert not ab.testing.explore(fn, schedules=report.schedule).ok
        assert ab.testing.explore(checked).ok
        assert bool(found) or not differs
        several = len(expected) > len({asked for asked, _ in classes(program)})
        gated = any(step.kind == "gate" for step in program.steps)
        assert bool(found) is several or (found and gated)

    for_each_program(150, check)


def test_the_enumeration_takes_no_two_classes_together():
    """Of small programs, all schedules are gone through one by one."""
    checked = 0
    for seed in range(400):
        program = random_program(random.Random(seed), operations=4)
        events = range(first_node(program, len(program.steps)))
        try:
            schedules = list(islice(every_schedule(program), MOST_SCHEDULES))
            if len(schedules) == MOST_SCHEDULES:
                continue
            checked += 1
            one_by_one = {found for found, _ in schedules}
        except DeadlockError:
            with pytest.raises(DeadlockError):
                classes(program)
            continue
        pairs = [(first, second) for second in events for first in events]
        by_bits = {
            (asked, frozenset(pair for bit, pair in enumerate(pairs) if ordering >> bit & 1))
            for asked, ordering in classes(program)
        }
        assert by_bits == one_by_one, f"seed {seed}\n{program}"
    assert checked > 200
