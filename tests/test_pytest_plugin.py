"""The options and markers that the package brings for pytest."""

import os
import re
import shlex
import subprocess
import sys

import pytest

RACE = """
import pytest
import anabranch as ab

def race():
    array, stream = ab.zeros(3, device="cpu"), ab.Stream("cpu")
    ab.fill(array, 1, stream=stream)

def test_plain():
    race()

@pytest.mark.anabranch_hazards("auto")
def test_auto():
    race()

@pytest.mark.anabranch_hazards("check")
def test_check():
    race()
"""


@pytest.fixture
def run_tests(script, tmp_path):
    """Run pytest on a file; gives what became of each test by name, and the output.

    `plugins`: what pytest loads; ours alone, or, as users have it, all that is installed, which takes seconds.
    """

    def run(text, *options, plugins="ours"):
        path = script(text, "test_it.py")
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *options, path]
        environment = dict(os.environ)
        if plugins == "ours":
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            command += ["-p", "pytest_anabranch"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        ends = {}
        for end, name in re.findall(r"^(PASSED|FAILED|ERROR)\b.*::(\w+)", done.stdout, re.MULTILINE):
            ends[name] = end.lower()
        return ends, done.stdout

    return run


@pytest.mark.parametrize(("options", "plain"), [([], "passed"), (["--anabranch-hazards=check"], "failed")])
def test_a_marker_goes_before_the_option(run_tests, options, plain):
    ends, output = run_tests(RACE, *options, plugins="all")
    assert ends == {"test_plain": plain, "test_auto": "passed", "test_check": "failed"}
    assert "RaceError" in output


def test_a_wrong_marker_fails_its_test_alone(run_tests):
    wrong = ["'nonsense'", "", "'check', 'off'", "mode='check'", "None", "[]"]
    marked = [
        f"@pytest.mark.anabranch_hazards({given})\ndef test_{number}(made): pass" for number, given in enumerate(wrong)
    ]
    text = """
import pytest

@pytest.fixture
def made():
    print("a fixture was made")

def test_first(): pass
"""
    ends, output = run_tests("\n".join([text, *marked, "def test_last(): pass"]))
    assert ends == {"test_first": "passed", **{f"test_{i}": "error" for i in range(len(wrong))}, "test_last": "passed"}
    for given in wrong:
        assert f"the marker is anabranch_hazards({given}); it takes one mode, which is one of 'auto', 'check'" in output
    assert "a fixture was made" not in output
    assert "INTERNALERROR" not in output


EXPLORED = """
import numpy as np
import pytest
import anabranch as ab

RUNS = {}

@pytest.fixture
def batch():
    RUNS["batch"] = RUNS.get("batch", 0) + 1
    return np.full(3, 5)

def program(batch, ordered):
    with ab.hazards("off"):
        x, y = ab.array(batch, device="cpu"), ab.array(batch, device="cpu")
        one, other = ab.Stream("cpu"), ab.Stream("cpu")
        ab.fill(x, 1, stream=one)
        if ordered:
            other.wait_stream(one)
        ab.copy(y, x, stream=other)
        assert y.numpy().tolist() == [1, 1, 1]

@pytest.mark.anabranch_explore
def test_right(batch):
    program(batch, True)

@pytest.mark.anabranch_explore(limit=50, timeout=10.0)
@pytest.mark.parametrize("ordered", [False])
def test_wrong(batch, ordered):
    RUNS["wrong"] = RUNS.get("wrong", 0) + 1
    print("wrong is run")
    program(batch, ordered)

@pytest.mark.anabranch_explore(20, seed=3)
def test_by_chance(batch):
    RUNS["chance"] = RUNS.get("chance", 0) + 1
    program(batch, True)

def test_plain():
    RUNS["plain"] = RUNS.get("plain", 0) + 1
    with ab.hazards("off"):
        x = ab.array(np.zeros(3), device="cpu")
        for value in 1, 2:
            ab.fill(x, value, stream=ab.Stream("cpu"))
        x.numpy()

def test_the_counts():
    print("counts:", sorted(RUNS.items()))
"""


def counts(output):
    return dict(eval(re.search(r"^counts: (.*)$", output, re.MULTILINE)[1]))


def test_a_marker_explores_its_test(run_tests):
    ends, output = run_tests(EXPLORED)
    others = dict.fromkeys(["test_right", "test_by_chance", "test_plain", "test_the_counts"], "passed")
    assert ends == {**others, "test_wrong": "failed"}
    assert counts(output)["chance"] == 20
    assert counts(output)["plain"] == 1
    assert counts(output)["batch"] == 3  # fixtures are made once


def test_a_failure_prints_the_command_that_replays_it(run_tests):
    _, output = run_tests(EXPLORED)
    # On CI the summary of pytest tells the whole message once more.
    (command,) = set(re.findall(r"^  pytest (.*)$", output, re.MULTILINE))
    test, option = shlex.split(command)
    assert test == "test_it.py::test_wrong[False]"
    ends, output = run_tests(EXPLORED, option, "-k", "test_wrong")
    assert ends == {"test_wrong": "failed"}
    assert output.count("wrong is run") == 1
    assert f"  pytest {command}" in output


@pytest.mark.parametrize(("option", "plain"), [("dpor", 2), ("30", 30)])
def test_the_option_explores_each_test(run_tests, option, plain):
    _, output = run_tests(EXPLORED, f"--anabranch-explore={option}", "-k", "plain or chance or counts")
    assert counts(output)["plain"] == plain
    assert counts(output)["chance"] == 20  # the marker goes before the option


def test_a_marker_that_explore_would_not_take_fails_its_test(run_tests):
    wrong = ["1, 2", "depth=3", "'dpor', schedules=4", "'nonsense'", "0"]
    marked = [
        f"@pytest.mark.anabranch_explore({given})\ndef test_{number}(): pass" for number, given in enumerate(wrong)
    ]
    ends, output = run_tests("\n".join(["import pytest", *marked, "def test_other(): pass"]))
    assert ends.pop("test_other") == "passed"
    assert len(ends) == len(wrong)
    assert set(ends.values()) <= {"failed", "error"}
    for given in wrong[:3]:
        assert f"the marker is anabranch_explore({given}); it takes what anabranch.testing.explore does" in output
    assert "'nonsense'" in output
    assert "INTERNALERROR" not in output


def test_skips_and_failures_of_pytest_in_a_test_that_is_explored(run_tests):
    text = """
import pytest

pytestmark = pytest.mark.anabranch_explore

def test_skipped(): pytest.skip("not here")
def test_failed(): pytest.fail("on purpose")
async def test_coroutine(): pass
"""
    ends, output = run_tests(text)
    assert ends == {"test_failed": "failed", "test_coroutine": "failed"}
    assert re.search(r"SKIPPED .*not here", output)
    assert "on purpose" in output
    assert "call asyncio.run in it" in output


def test_an_exploration_that_ends_before_its_first_run_fails(run_tests):
    ends, output = run_tests("import pytest\n@pytest.mark.anabranch_explore(timeout=1e-9)\ndef test_it(): pass")
    assert ends["test_it"] == "failed"
    assert "nothing was tested" in output
