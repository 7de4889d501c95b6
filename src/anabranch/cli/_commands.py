"""The commands of the command line."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from typing import Annotated, NamedTuple, TextIO

import typer

import anabranch as ab
from anabranch._core import core
from anabranch._hazards import ordering
from anabranch._trace.save import check_target, save
from anabranch.cli._script import explore_script, run_script

DEMO = Path(__file__).parents[1] / "_examples" / "photo_pipeline.py"
DEMO_NEEDS = ("numba", "numpy", "PIL", "rich", "scipy", "skimage")
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "compare.py"

# Packages that the library uses, and compilers of kernels: for CPUs, from Python for GPUs, from CUDA C++.
PACKAGES = ("anabranch", "numpy", "numba", "numba-cuda-mlir", "cuda-core")

# Variables that change how programs run, besides those that begin with ANABRANCH_.
VARIABLES = ("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "CUDA_VISIBLE_DEVICES", "NUMBA_DISABLE_JIT", "PYTHON_GIL")

# With more streams than this, the least busy ones share a line of the report.
MOST_STREAMS = 20

# Maximum seconds that a timeline waits for pending work when its script ends.
PATIENCE = 5.0

# Settings of commands whose further arguments belong to another program.
PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}

app = typer.Typer(
    help="Streams for Python that are safe by default, at the speed of the bare driver, on a GPU or with none.",
    no_args_is_help=True,
    add_completion=False,
)


class HazardMode(Enum):
    """Hazard modes, for the help text."""

    auto = "auto"
    check = "check"
    off = "off"


class Script(NamedTuple):
    """A script to run after the command line is parsed."""

    path: str
    argv: list[str]
    schedules: str | int | None = None  # under which it is explored
    options: tuple[str, ...] = ()  # that a replay of one of them needs


def run_command() -> None:
    """Run the command that `sys.argv` names, and exit."""
    scripts: list[Script] = []
    try:
        typer.main.get_command(app)(prog_name="anabranch", obj=scripts)
    except SystemExit:
        if not scripts:
            raise
    # Runs outside of typer, which handles exceptions and Ctrl-C in its own way.
    path, argv, schedules, options = scripts[0]
    if schedules is None:
        run_script(path, argv)
    else:
        explore_script(path, argv, schedules, options)


@app.command()
def info() -> None:
    """Show devices, the default stream and why it is that one, versions, and environment variables."""
    lock = "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"
    versions = [(name, _version(name)) for name in PACKAGES]
    _show(["package", "version"], [("python", f"{python_version()}, interpreter lock {lock}"), *versions], sys.stdout)
    names = sorted(name for name in os.environ if name.startswith("ANABRANCH_") or name in VARIABLES)
    _show(
        ["environment variable", "value"],
        [(name, os.environ[name]) for name in names] or [("none is set", "")],
        sys.stdout,
    )
    try:
        current, devices = ab.current_device(), ab.devices()
    except (ab.Error, ValueError) as error:
        sys.exit(f"No device can be used: {error}")
    _show(["device", "name", "workers", "memory", "priorities"], [_describe(device) for device in devices], sys.stdout)
    if not ab.devices("cuda"):
        try:
            ab.Device("cuda:0")
        except ab.DeviceError as error:
            print(f"{error}\n")
    stream, reason = core.default_stream_reason()
    _show(
        ["default", "", "because of"],
        [
            (
                "device",
                current.alias,
                "ANABRANCH_DEVICE" if os.environ.get("ANABRANCH_DEVICE") else "the devices there are",
            ),
            ("stream", stream, reason),
        ],
        sys.stdout,
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _describe(device: ab.Device) -> tuple[str, ...]:
    lowest, highest = device.priority_range
    free, total = (f"{size / 2**30:.1f}" for size in (device.free_memory, device.total_memory))
    return device.alias, device.name, str(device.workers), f"{free} of {total} GiB free", f"{lowest} to {highest}"


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    context: typer.Context,
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="For the script, options too.")] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats", help="Say at the end, on stderr, how many operations each stream ran and how long it was busy."
        ),
    ] = False,
    hazards: Annotated[
        HazardMode | None,
        typer.Option("--hazards", help="What becomes of missing order: it is added, an error, or neither."),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            "--timeline", metavar="FILE", help="Save at the end what ran where and when: .html, .svg, .json, .pftrace."
        ),
    ] = None,
    explore: Annotated[
        bool,
        typer.Option("--explore", help="Run it under every schedule that can matter, on the CPU; fails if one does."),
    ] = False,
    schedules: Annotated[
        str | None,
        typer.Option("--schedules", metavar="dpor|N|SCHEDULE", help="With --explore: N at random, or one again."),
    ] = None,
) -> None:
    """Run a script, as python SCRIPT [ARGS] does."""
    if not os.path.isfile(script):
        raise typer.BadParameter(f"there is no file {script!r}")
    given, arguments = _leading_options(arguments or [])
    if "--hazards" in given:
        if given["--hazards"] not in {mode.value for mode in HazardMode}:
            raise typer.BadParameter(f"--hazards is auto, check or off, not {given['--hazards']!r}")
        hazards = HazardMode(given["--hazards"])
    if "--timeline" in given:
        timeline = Path(given["--timeline"])
    explore = explore or "--explore" in given
    schedules = given.get("--schedules", schedules)
    if schedules is not None and not explore:
        raise typer.BadParameter("--schedules says what --explore runs, which is not given")
    if explore and timeline is not None:
        raise typer.BadParameter("--timeline shows one run, and --explore makes many")
    if hazards is not None:
        os.environ["ANABRANCH_HAZARDS"] = hazards.value  # for child processes of the script
        ordering.default_mode(hazards.value).__enter__()
    if timeline is not None:
        try:
            check_target(timeline)
        except (ValueError, OSError, ImportError) as error:
            raise typer.BadParameter(str(error)) from None
        trace = ab.trace()
        trace.__enter__()
        atexit.register(_save, trace, timeline.absolute(), os.getpid())
    if stats:
        core.keep_activity(True)
        # Registered before the script registers anything, so it runs last.
        atexit.register(_report, os.getpid())
    explored = _number_or_name(schedules or "dpor") if explore else None
    options = () if hazards is None else (f"--hazards={hazards.value}",)
    context.obj.append(Script(script, [script, *arguments], explored, options))


def _number_or_name(schedules: str) -> str | int:
    return int(schedules) if schedules.isdecimal() else schedules


def _leading_options(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    # These options may also directly follow the script's name; everything after them is the script's.
    given, rest = {}, list(arguments)
    while rest and rest[0].partition("=")[0] in ("--hazards", "--timeline", "--explore", "--schedules"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--explore":
            if equals:
                raise typer.BadParameter("--explore takes no value; --schedules does")
            given[name] = ""
            continue
        if not equals and not rest:
            raise typer.BadParameter(f"{name} needs a value")
        given[name] = value if equals else rest.pop(0)
    return given, rest


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
    _show(["device", "stream", "operations", "busy"], rows or [("none was used", "", "0", "0.000 ms")], sys.stderr)


@app.command(context_settings=PASSED_ON)
def demo(context: typer.Context) -> None:
    """Process photographs on one stream and on several; demo --help says more."""
    missing = [package for package in DEMO_NEEDS if find_spec(package) is None]
    if missing:
        sys.exit(f"The demo needs {', '.join(missing)}: pip install 'anabranch[demo]'")
    context.obj.append(Script(str(DEMO), ["anabranch demo", *context.args]))


@app.command(context_settings=PASSED_ON)
def bench(context: typer.Context) -> None:
    """Run the benchmarks, where the source is at hand."""
    if not BENCHMARKS.is_file():
        sys.exit("The benchmarks come with the source: in a clone of it, run make bench")
    context.obj.append(Script(str(BENCHMARKS), ["anabranch bench", *context.args]))


def _show(headings: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO) -> None:
    # Plain text if the output is not a terminal, for searching and pasting.
    if file.isatty() and find_spec("rich") is not None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*headings, box=None, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        Console(file=file).print(table, end="\n\n")
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), file=file)
    print(file=file)
