"""Anabranch in tests: hazards and exploration, each as an option for all tests and as a marker for one.

The options are `--anabranch-hazards=check` and `--anabranch-explore=dpor`, the markers `anabranch_hazards("check")` and
`anabranch_explore`.

A module of its own, so that test runs which use neither import nothing of the package.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_anabranch import _explore

MODES = ("auto", "check", "off")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("anabranch").addoption(
        "--anabranch-hazards",
        choices=MODES,
        help="what becomes of missing order between accesses to the same memory; under check a race fails its test",
    )
    _explore.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", 'anabranch_hazards(mode): with "check", a race between accesses fails the test')
    _explore.add_marker(config)


def _mode_of(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("anabranch_hazards")
    if marker is None:
        return item.config.getoption("--anabranch-hazards")
    return marker.args[0] if _is_right(marker) else None


def _is_right(marker: pytest.Mark) -> bool:
    return len(marker.args) == 1 and not marker.kwargs and marker.args[0] in MODES


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Set the mode for the test with its fixtures, also for threads that it starts."""
    mode = _mode_of(item)
    if mode is None:
        return (yield)
    from anabranch._hazards.ordering import default_mode

    with default_mode(mode):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail the test if a marker of ours is wrong, before its fixtures are made."""
    _explore.check_marker(item)
    marker = item.get_closest_marker("anabranch_hazards")
    if marker is not None and not _is_right(marker):
        given = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        modes = ", ".join(map(repr, MODES))
        pytest.fail(f"the marker is anabranch_hazards({given}); it takes one mode, which is one of {modes}", False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call the test under exploration where that is asked for."""
    arguments = _explore.explored_as(pyfuncitem)
    if arguments is None:
        return None
    _explore.call_explored(pyfuncitem, arguments)
    return True
