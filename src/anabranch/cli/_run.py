"""``anabranch run``: what it switches on before a script, and reports after it."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anabranch as ab
from anabranch._core import core
from anabranch._hazards import ordering
from anabranch._trace.save import check_target, save
from anabranch.cli._script import explore_script, run_script
from anabranch.cli._table import show

# With more streams than this, the least busy ones share a line of the report.
MOST_STREAMS: Final = 20

# Maximum seconds that a timeline waits for pending work when its script ends.
PATIENCE: Final = 5.0

_WITH_VALUE: Final = ("--hazards", "--timeline", "--schedules")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments of the command to its parser."""
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    # Without a default, argparse calls it required where the script is missing.
    parser.add_argument("arguments", metavar="ARGS", nargs="*", default=[], help="for the script, options too")
    parser.add_argument(
        "--hazards",
        choices=("auto", "check", "off"),
        help="what becomes of missing order: it is added, an error, or neither",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        help="save at the end what ran where and when: .html, .svg, .json, .pftrace; of several ranks, each its own: "
        "out.0.html, out.1.html",
    )
    parser.add_argument(
        "--explore",
        action="store_true",
        help="run it under every schedule that can matter, on the CPU; fails if one does",
    )
    parser.add_argument(
        "--schedules",
        metavar="dpor|N|SCHEDULE",
        type=_schedules,
        help="with --explore: N at random, or one schedule again",
    )
    parser.add_argument(
        "--stats",
        action="store_true",
        help="say at the end, on stderr, how many operations each stream ran and how long it was busy",
    )


def run(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Run a script, as ``python SCRIPT [ARGS]`` does.

    Parameters
    ----------
    parser : ArgumentParser
        Has been to `add_run`.
    argv : sequence of str
        What follows ``anabranch run``. All options but ``--stats`` may also directly follow the script's name;
        everything after them is the script's.
    """
    before, rest = _leading_options(argv, (*_WITH_VALUE, "--explore", "--stats"))
    script, after = rest[:1], rest[1:]
    more: list[str] = []
    if script and not script[0].startswith("-"):
        more, after = _leading_options(after, (*_WITH_VALUE, "--explore"))
    options = parser.parse_args([*before, *more, *script])
    if not os.path.isfile(options.script):
        parser.error(f"there is no file {options.script!r}")
    if options.schedules is not None and not options.explore:
        parser.error("--schedules says what --explore runs, which is not given")
    if options.explore and options.timeline is not None:
        parser.error("--timeline shows one run, and --explore makes many")
    if options.hazards is not None:
        os.environ["ANABRANCH_HAZARDS"] = options.hazards  # for child processes of the script
        ordering.default_mode(options.hazards).__enter__()
    if options.timeline is not None:
        try:
            check_target(options.timeline)
        except (ValueError, OSError, ImportError) as error:
            parser.error(str(error))
        trace = ab.trace()
        trace.__enter__()
        atexit.register(_save, trace, _own(options.timeline.absolute()), os.getpid())
    if options.stats:
        core.keep_activity(True)
        # Registered before the script registers anything, so it runs last.
        atexit.register(_report, os.getpid())
    if options.explore:
        again = () if options.hazards is None else (f"--hazards={options.hazards}",)
        explore_script(options.script, [options.script, *after], options.schedules or "dpor", again)
    run_script(options.script, [options.script, *after])


def _schedules(text: str) -> str | int:
    """Return what `anabranch.testing.explore` takes; what it would refuse is an error of the command line."""
    from anabranch.testing._explore import exploration_of

    schedules: str | int = int(text) if text.removeprefix("-").isdecimal() else text
    try:
        exploration_of(schedules)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return schedules


def _leading_options(arguments: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into the options of those names at their start, with their values, and the rest."""
    end = 0
    while end < len(arguments) and arguments[end].partition("=")[0] in names:
        end += 2 if arguments[end] in _WITH_VALUE else 1
    return list(arguments[:end]), list(arguments[end:])


def _own(path: Path) -> Path:
    """Return the path with the rank in the file's name, where a launcher has started several processes."""
    from anabranch.distributed._launcher import rank_among

    rank = rank_among(os.environ)
    return path if rank is None else path.with_name(f"{path.stem}.{rank}{path.suffix}")


def _save(trace: ab.trace, path: Path, process: int) -> None:
    if os.getpid() != process:  # a forked child of the script
        return
    trace.__exit__(None, None, None)
    # A limited wait: the end of a script does not wait for its work either.
    save(trace._so_far(PATIENCE), path)
    print(f"{trace!r} saved to {path}", file=sys.stderr)


def _report(process: int) -> None:
    if os.getpid() != process:  # a forked child of the script
        return
    streams: dict[tuple[str, str], tuple[int, float]] = {}
    for device, stream, operations, busy in core.activity():
        before = streams.get((device, stream), (0, 0.0))
        streams[device, stream] = (before[0] + operations, before[1] + busy)
    busiest = sorted(streams.items(), key=lambda stream: stream[1][1], reverse=True)
    rest = busiest[MOST_STREAMS:]
    if rest:
        names = ", ".join(sorted({device for (device, _), _ in rest}))
        operations, busy = (sum(column) for column in zip(*(activity for _, activity in rest), strict=True))
        busiest[MOST_STREAMS:] = [((names, f"{len(rest)} others"), (operations, busy))]
    rows = [(*stream, str(operations), f"{busy:.3f} ms") for stream, (operations, busy) in busiest]
    show(["device", "stream", "operations", "busy"], rows or [("none was used", "", "0", "0.000 ms")], sys.stderr)
