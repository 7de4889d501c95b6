"""The option and the marker that the package brings for pytest."""

import re
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
    """Run pytest on a file; gives what became of each test by name, and the output."""

    def run(text, *options):
        path = script(text, "test_it.py")
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *options, path]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        ends = {}
        for end, name in re.findall(r"^(PASSED|FAILED|ERROR)\b.*::(\w+)", done.stdout, re.MULTILINE):
            ends[name] = end.lower()
        return ends, done.stdout

    return run


@pytest.mark.parametrize(("options", "plain"), [([], "passed"), (["--anabranch-hazards=check"], "failed")])
def test_a_marker_goes_before_the_option(run_tests, options, plain):
    ends, output = run_tests(RACE, *options)
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
