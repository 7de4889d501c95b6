"""Random programs under "check": an operation raises if and only if the model finds a race with an earlier one."""

import pytest

import anabranch as ab

from .program import Program, at_line, random_programs

pytestmark = pytest.mark.filterwarnings("ignore:.*recorded:RuntimeWarning")


@random_programs(examples=1000)
def test_a_race_is_raised_exactly_where_there_is_one(devices, rng):
    with ab.hazards("check"):
        Program(rng, devices, ("check",)).run(40)


@random_programs(examples=400)
def test_with_modes_that_change_nothing_wrong_is_reported(devices, rng):
    """What ran under another mode counts as unknown; what is reported is a race of two checked operations."""
    with ab.hazards("check"):
        MixedProgram(rng, devices, ("check", "off")).run(30)


class MixedProgram(Program):
    """What runs under "off" makes order that the library need not know, and hides what its stream did before."""

    def enqueue(self, mode, races, call, line):
        with ab.hazards(mode):
            try:
                return call(), set()
            except ab.RaceError as raised:
                error = raised
        checked = {access.line for access in self.accesses if access.mode == "check"}
        assert (mode, error.second.line) == ("check", line)
        assert error.first.line in checked
        return None

    def host(self):
        """Not here: which of those raise is not known."""

    def gate(self):
        """Not here: a checked operation does wait for unknown ones, though it is told nobody."""


@random_programs(examples=400)
def test_auto_comes_after_what_was_off(devices, rng):
    OffProgram(rng, devices, ("auto", "off")).run(40)


class OffProgram(Program):
    """What nothing orders yet does not run under "off", so that the contents are known.

    Host functions would not know which of it comes after them, and wait for that for ever.
    """

    def submit(self):
        """Not here."""

    def enqueue(self, mode, races, call, line):
        with ab.hazards("auto" if races else mode):
            return call(), {first.node for first, _ in races}


def test_a_race_says_both_lines_streams_and_what_mends_it(devices_pair):
    one, other = (ab.Stream(devices_pair[0]) for _ in range(2))
    array = at_line(3, ab.zeros, 8, stream=one)
    one.synchronize()
    with ab.hazards("check"):
        at_line(5, ab.fill, array, 1, stream=one)
        error = raised(lambda: at_line(7, ab.fill, array, 2, stream=other))
        assert (error.kind, error.first.line, error.second.line) == ("WAW", 5, 7)
        assert (error.first.file, error.second.file) == ("program", "program")
        assert (error.first.stream, error.second.stream) == (one, other)
        assert (error.first.access, error.second.access) == ("write", "write")
        assert ".wait_stream(" in error.fix
        error = raised(lambda: at_line(9, other.submit, int, reads=[array]))
        assert (error.kind, error.second.line, error.second.access) == ("RAW", 9, "read")
        error = raised(lambda: at_line(11, other.submit, int, writes=[array]))
        assert (error.kind, error.second.line, error.second.access) == ("RAW", 11, "write")
        other.wait_stream(one)
        at_line(13, other.submit, int, reads=[array])
        error = raised(lambda: at_line(15, ab.fill, array, 3, stream=one))
        assert (error.kind, error.first.line, error.first.access) == ("WAR", 13, "read")


def test_collected_are_all_pairs_of_lines_and_the_work_runs(devices_pair):
    one, other = (ab.Stream(devices_pair[0]) for _ in range(2))
    array = ab.zeros(8, stream=one)
    one.synchronize()
    with ab.testing.Gate(one), ab.collect_races() as races:
        for _ in range(2):
            at_line(5, ab.fill, array, 1, stream=one)
            at_line(7, ab.fill, array[:4], 2, stream=other)
    assert [(race.kind, race.first.line, race.second.line) for race in races] == [("WAW", 5, 7), ("WAW", 7, 5)]
    ab.synchronize()
    assert array.numpy()[4:].tolist() == [1] * 4


def test_a_copy_that_overlaps_and_is_refused_leaves_no_trace(devices_pair):
    one, other, third = (ab.Stream(devices_pair[0]) for _ in range(3))
    array, got = ab.zeros(8, stream=one), ab.zeros(4, stream=other)
    one.synchronize()
    with ab.hazards("check"):
        ab.copy(got, array[:4], stream=other)
        assert raised(lambda: ab.copy(array[1:5], array[:4], stream=third)).kind == "WAR"
        one.wait_stream(other)
        ab.fill(array, 1, stream=one)


def raised(operation):
    try:
        operation()
    except ab.RaceError as error:
        return error
    raise AssertionError("nothing was raised")
