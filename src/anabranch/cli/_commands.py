"""The commands of the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from anabranch.cli._script import run_script

DEMO: Final = Path(__file__).parents[1] / "_examples" / "photo_pipeline.py"
DEMO_NEEDS: Final = ("numba", "numpy", "PIL", "rich", "scipy", "skimage")
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "compare.py"

_DESCRIPTION: Final = (
    "Streams for Python that are safe by default, at the speed of the bare driver, on a GPU or with none."
)
_INFO: Final = "Show devices, the default stream and why it is that one, versions, and environment variables."
_RUN: Final = "Run a script, as python SCRIPT [ARGS] does."
_DEMO: Final = "Process photographs on one stream and on several; demo --help says more."
_DOCTOR: Final = "Look for what keeps programs from running well here, and say what to do about it."
_BENCH: Final = "Measure this machine's calls against their twins, where the source is at hand; bench --help says more."


def main() -> None:
    """Run the command that ``sys.argv`` names.

    Raises
    ------
    SystemExit
        At the end of every command but those that run a script.
    """
    name, *argv = sys.argv[1:] or ["--help"]
    # Their arguments belong to another program.
    if name == "demo":
        demo(argv)
    elif name == "bench":
        bench(argv)
    else:
        _parse(name, argv)


def _parse(name: str, argv: Sequence[str]) -> None:
    from anabranch.cli._run import add_run, run

    parser = argparse.ArgumentParser("anabranch", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="show the version of the package, and exit")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    commands.add_parser("info", help=_INFO, description=_INFO)
    runs = commands.add_parser("run", help=_RUN, description=_RUN, allow_abbrev=False)
    add_run(runs)
    commands.add_parser("doctor", help=_DOCTOR, description=_DOCTOR)
    commands.add_parser("demo", help=_DEMO)
    commands.add_parser("bench", help=_BENCH)
    if name == "run":
        run(runs, argv)
        return
    options, unknown = parser.parse_known_args([name, *argv])
    if unknown:
        commands.choices.get(options.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.version:
        import anabranch

        print(f"anabranch {anabranch.__version__}")
    elif options.command == "info":
        from anabranch.cli._info import info

        info()
    elif options.command == "doctor":
        from anabranch.cli._doctor import doctor

        doctor()
    else:
        parser.print_help()


def demo(argv: Sequence[str]) -> None:
    """Run the demonstration; `argv` is for it."""
    missing = [package for package in DEMO_NEEDS if find_spec(package) is None]
    if missing:
        sys.exit(f"The demo needs {', '.join(missing)}: pip install 'anabranch[demo]'")
    run_script(str(DEMO), ["anabranch demo", *argv])


def bench(argv: Sequence[str]) -> None:
    """Run the benchmarks; `argv` is for them."""
    if not BENCHMARKS.is_file():
        if {"-h", "--help"} & set(argv):
            print("usage: anabranch bench [IDS]\n\nThe benchmarks, and the help about them, come with the source.")
            return
        sys.exit("The benchmarks come with the source: in a clone of it, run make bench")
    run_script(str(BENCHMARKS), ["anabranch bench", *(argv or _measured_by_default())])


def _measured_by_default() -> Sequence[str]:
    """Return what takes less than a minute: calls on the CUDA device against C, else on the CPU against its twins."""
    import anabranch as ab

    names = ("launch", "event", "stream", "memory", "copy")
    return [f"cuda.{name}.*" for name in names] if ab.devices("cuda") else [f"{name}.*" for name in names]
