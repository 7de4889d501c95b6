"""The options of `anabranch run`. Each test in a process of its own."""

from __future__ import annotations

import json
import shlex

import pytest

from .command_line import anabranch

# -- run --timeline --

WORK = """
    import anabranch as ab

    s = ab.Stream("cpu", name="side")
    a = ab.zeros(10, stream=s)
    gate = ab.testing.Gate(s)
    ab.fill(a, 1, stream=s)
    ab.fill(a, 2, stream=ab.Stream("cpu"))
    gate.open()
    """


def test_a_timeline_is_saved_when_the_script_has_ended(script, tmp_path):
    path = tmp_path / "out.json"
    result = anabranch("run", "--timeline", str(path), script(WORK))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"<trace of 5 operations> saved to {path}\n"
    events = json.loads(path.read_text())["traceEvents"]
    waits = [event for event in events if event.get("cat") == "wait" and event["ph"] == "X"]
    assert [(event["args"]["added"], event["args"]["line"]) for event in waits] == [(True, 8)]


@pytest.mark.parametrize("options", [["--hazards", "check", "--timeline=out.svg"], ["--timeline", "out.svg"]])
def test_what_follows_the_script_at_once_may_be_ours(script, tmp_path, options):
    path = script("import sys; import anabranch as ab; print(sys.argv[1:]); ab.zeros(1)")
    result = anabranch("run", path, *options, "x", "--hazards", "y", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "['x', '--hazards', 'y']\n")
    assert (tmp_path / "out.svg").exists()


@pytest.mark.parametrize("options", [["--hazards"], ["--hazards=maybe"], ["--timeline", "x.png"]])
def test_options_after_the_script_are_checked(script, options):
    result = anabranch("run", script("print('ran')"), *options)
    assert (result.returncode, result.stdout) == (2, "")


@pytest.mark.parametrize("path", ["out.png", "missing/out.html"])
def test_a_timeline_that_cannot_be_saved_is_an_error_before_the_script_runs(script, tmp_path, path):
    result = anabranch("run", "--timeline", path, script("print('ran')"), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")


def test_a_timeline_is_saved_of_a_script_that_fails(script, tmp_path):
    path = tmp_path / "out.json"
    result = anabranch("run", "--hazards", "check", "--timeline", str(path), script(RACE))
    assert result.returncode == 1
    assert "RaceError: WAW" in result.stderr
    assert path.exists()


def test_a_timeline_does_not_wait_for_ever(script, tmp_path):
    path = tmp_path / "out.json"
    assert anabranch("run", "--timeline", str(path), script(WORK.replace("gate.open()", ""))).returncode == 0
    assert len([event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "fill"]) == 3


def test_each_of_several_ranks_saves_a_timeline_of_its_own(script, tmp_path):
    path = script("import anabranch as ab; ab.zeros(1)")
    for rank in ("0", "1"):
        variables = {"PMI_RANK": rank, "PMI_SIZE": "2"}
        result = anabranch("run", "--timeline", "out.v1.json", path, cwd=tmp_path, env=variables)
        assert f"saved to {tmp_path / f'out.v1.{rank}.json'}" in result.stderr
    assert sorted(each.name for each in tmp_path.glob("*.json")) == ["out.v1.0.json", "out.v1.1.json"]


# -- run --hazards --

RACE = """
    import anabranch as ab

    s, t = ab.Stream("cpu"), ab.Stream("cpu")
    a = ab.zeros(10, stream=s)
    ab.fill(a, 1, stream=t)
    print(a.numpy()[0])
    """


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_a_script_runs_with_the_mode_of_hazards_asked_for(script, mode):
    result = anabranch("run", "--hazards", mode, script(RACE), env={"ANABRANCH_HAZARDS": "auto"})
    assert ("RaceError: WAW" in result.stderr) == (mode == "check")
    assert result.returncode == (1 if mode == "check" else 0)


def test_a_mode_that_is_none_is_an_error(script):
    assert anabranch("run", "--hazards", "maybe", script(RACE)).returncode == 2
    result = anabranch("run", script(RACE), env={"ANABRANCH_HAZARDS": "maybe"})
    assert "ANABRANCH_HAZARDS is 'maybe'; it is one of auto, check, off" in result.stderr


# -- run --explore --

PROGRAM = """
    import sys
    import anabranch as ab

    print("run", sys.argv[1:], __name__)
    a, b = ab.array([1], device="cpu"), ab.array([2], device="cpu")
    s, t = ab.Stream("cpu"), ab.Stream("cpu")
    ab.copy(a, b, stream=s)
    if "right" in sys.argv:
        t.wait_stream(s)
    ab.copy(b, a, stream=t)
    if b.numpy()[0] != 2:
        sys.exit("the wrong number")
    """


@pytest.mark.parametrize("after", [False, True], ids=["before the script", "after it"])
def test_a_script_that_is_right_under_every_schedule(script, after):
    options, path = ["--explore", "--hazards", "off"], script(PROGRAM)
    result = anabranch("run", *([path, *options] if after else [*options, path]), "right")
    assert (result.returncode, result.stdout) == (0, "run ['right'] __main__\n")
    assert "schedule again" not in result.stderr


def test_a_script_that_one_schedule_makes_fail(script):
    result = anabranch("run", "--explore", "--hazards", "off", script(PROGRAM), "wrong")
    assert result.returncode == 1
    assert result.stdout == "run ['wrong'] __main__\n"
    assert "the wrong number" in result.stderr
    command = shlex.split(result.stderr.splitlines()[-1])
    assert command[:3] == ["anabranch", "run", "--explore"]
    again = anabranch(*command[1:])
    assert again.returncode == 1
    assert "the wrong number" in again.stderr


def test_with_added_order_the_script_is_right(script):
    assert anabranch("run", "--explore", script(PROGRAM), "wrong").returncode == 0


def test_a_number_of_schedules(script):
    result = anabranch("run", "--explore", "--schedules", "5", "--hazards", "off", script(PROGRAM), "right")
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("schedules", "said"),
    [
        ("abc", "'abc' is not a schedule: it begins with 'abc'"),
        ("x1-?", "'x1-?' is not a schedule: "),
        ("", "'' is not a schedule: "),
        ("0", "schedules is at least 1 and below 2**64, not 0"),
        ("-3", "schedules is at least 1 and below 2**64, not -3"),
        (str(2**64), f"schedules is at least 1 and below 2**64, not {2**64}"),
    ],
)
def test_schedules_that_make_no_sense_are_an_error_before_the_script_runs(script, schedules, said):
    result = anabranch("run", "--explore", "--schedules", schedules, script("print('ran')"))
    assert (result.returncode, result.stdout) == (2, "")
    assert f"anabranch run: error: argument --schedules: {said}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "options",
    [["--schedules", "5"], ["--explore", "--timeline", "x.svg"], ["--explore=dpor"], ["--explore", "--schedules"]],
)
@pytest.mark.parametrize("after", [False, True], ids=["before the script", "after it"])
def test_options_that_do_not_go_together(script, options, after):
    path = script(PROGRAM)
    result = anabranch("run", *([path, *options] if after else [*options, path]))
    assert (result.returncode, result.stdout) == (2, "")
