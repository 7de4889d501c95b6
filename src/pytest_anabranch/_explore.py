"""Tests under exploration: `--anabranch-explore` and the marker `anabranch_explore`."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from typing import Any

import pytest

ARGUMENTS = ("schedules", "seed", "limit", "timeout")


def add_option(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("anabranch").addoption(
        "--anabranch-explore",
        metavar="dpor|N|SCHEDULE",
        help="run each test under all schedules of its operations that can matter, under N of them, or under one",
    )


def add_marker(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        'anabranch_explore(schedules="dpor", *, seed, limit, timeout): run the test under schedules of its operations '
        "that can matter; the arguments are those of anabranch.testing.explore",
    )


def explored_as(item: pytest.Item) -> dict[str, Any] | None:
    """Return the arguments with which a test is explored, or None if it is not.

    A schedule on the command line goes before the marker, for it replays a failure; else the marker does.
    """
    option = item.config.getoption("--anabranch-explore")
    marker = item.get_closest_marker("anabranch_explore")
    if option is None and marker is None:
        return None
    arguments: dict[str, Any] = {} if option is None else {"schedules": int(option) if option.isdecimal() else option}
    if marker is not None:
        marked = dict(marker.kwargs)
        if marker.args:
            marked["schedules"] = marker.args[0]
        is_replay = option is not None and option != "dpor" and not option.isdecimal()
        arguments = marked | arguments if is_replay else arguments | marked
    return arguments


def check_marker(item: pytest.Item) -> None:
    """Fail a test whose marker is wrong."""
    marker = item.get_closest_marker("anabranch_explore")
    if marker is None:
        return
    unknown = [name for name in marker.kwargs if name not in ARGUMENTS]
    if len(marker.args) > 1 or unknown or (marker.args and "schedules" in marker.kwargs):
        given = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        pytest.fail(
            f"the marker is anabranch_explore({given}); it takes what anabranch.testing.explore does: schedules, and "
            f"by name {', '.join(ARGUMENTS[1:])}",
            False,
        )


def call_explored(function: pytest.Function, arguments: dict[str, Any]) -> None:
    """Call a test under exploration; fails with the schedule and the command that replays it.

    The fixtures are made once, and shared by all runs.
    """
    test: Callable[..., object] = function.obj
    if inspect.iscoroutinefunction(test):
        pytest.fail("exploration calls functions, and this test is a coroutine function; call asyncio.run in it", False)
    given = {name: function.funcargs[name] for name in function._fixtureinfo.argnames}

    import anabranch as ab

    report = ab.testing.explore(lambda: test(**given), **arguments)
    if report.runs == 0:
        pytest.fail("the exploration ended before its first run, by timeout= or Ctrl-C: nothing was tested", False)
    if report.ok:
        return
    if isinstance(report.error, pytest.skip.Exception | pytest.xfail.Exception):
        raise report.error
    lines = [str(report)]
    if report.schedule is not None:
        option = shlex.quote(f"--anabranch-explore={report.schedule}")
        lines += ["", "This runs the schedule again:", f"  pytest {shlex.quote(function.nodeid)} {option}"]
    raise pytest.fail.Exception("\n".join(lines), pytrace=False) from report.error
