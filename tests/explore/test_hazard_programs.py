"""The random programs of the hazard tests, under each schedule that can matter."""

import contextvars
import random
from contextlib import contextmanager

import pytest

import anabranch as ab

from ..hazards import program as hazards
from ..hazards.graph_program import GraphProgram
from .running import FIRST_SEED, MANY

pytestmark = [pytest.mark.timeout(0), pytest.mark.filterwarnings("ignore:.*recorded:RuntimeWarning")]

RUNS = 200  # of each program at the most: those that ask often have very many


class Program(hazards.Program):
    """A program that is the same each time: what opens gates is the host, and no timer."""

    @contextmanager
    def awaiting(self, nodes):
        self.open_for(nodes)
        yield


class Unordered(Program):
    """A program to which no order is added. `races`: what the model has found missing."""

    def __init__(self, rng, devices):
        self.races = []
        super().__init__(rng, devices, ("off",))

    def enqueue(self, mode, races, call, line):
        self.races += races
        with ab.hazards(mode):
            return call(), set()

    def submit(self):
        """Not here: a function that reads back cannot know what comes before it."""


def explore(kind, seed, steps):
    """Explore a program; return the report, and the programs of all runs."""
    runs = []

    def fn():
        def run():
            runs.append(kind(random.Random(seed), ab.devices("cpu")[:3]))
            runs[-1].run(steps)

        contextvars.Context().run(run)

    return ab.testing.explore(fn, limit=RUNS), runs


def for_each_seed(count, check):
    for seed in range(FIRST_SEED, FIRST_SEED + (MANY or count)):
        try:
            check(seed)
        except BaseException as error:
            error.add_note(f"ANABRANCH_FIRST_SEED={seed} ANABRANCH_EXAMPLES=1")
            raise


def test_with_added_order_every_schedule_does_as_the_program_says():
    def check(seed):
        report, _ = explore(Program, seed, 40)
        assert report.ok, report

    for_each_seed(150, check)


def test_the_nodes_of_a_graph_do_as_its_program_says_in_every_schedule():
    def check(seed):
        report, _ = explore(GraphProgram, seed, 40)
        assert report.ok, report

    for_each_seed(100, check)


def test_without_added_order_only_races_fail():
    failed = []

    def check(seed):
        report, runs = explore(Unordered, seed, 25)
        raced = any(run.races for run in runs)
        assert report.ok or (raced and isinstance(report.error, AssertionError)), report
        failed.append(not report.ok)

    for_each_seed(150, check)
    assert MANY or any(failed)
