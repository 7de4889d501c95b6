"""Count the instructions that the hot paths take, and compare them with those on record.

    python benchmarks/counts.py             # count and print
    python benchmarks/counts.py --check     # and fail if a path takes more than it did; `make counts`, and what CI runs
    python benchmarks/counts.py --update    # and put the counts on record for this interpreter and architecture

The counts are those of the benchmarks of the same IDs, per call, under `valgrind --tool=callgrind`, for the main thread
alone: what a user's thread pays, the interpreter's part and the loop's included. They repeat to within a few
instructions, on a busy machine too. The record is kept per minor version of Python and architecture; another build of
the same version may need a few more or fewer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from counts_driver import COUNT
from harness import FOLDER

RECORD = FOLDER / "results" / "counts.json"

PATHS = (
    "launch.4args_held",
    "event.record",
    "event.record_wait",
    "event.record_wait_pending",
    "event.query",
    "event.elapsed_time",
    "event.create_destroy",
    "stream.create_destroy",
    "stream.with",
    "stream.current",
    "stream.synchronize_idle",
    "memory.alloc_free_4k",
    "copy.4k_held",
    "launch.4args_checked",  # last: once somebody checks, other calls ask for the mode
)

# By how much a count may pass the recorded one: compilers and patch versions of Python differ.
TOLERANCE = 0.10
SLACK = 20
# What a path may take beyond another one, whatever is on record.
ABOVE = {"launch.4args_checked": ("launch.4args_held", 150)}


class UnavailableError(Exception):
    """A tool that is needed is missing; the message says how to get it."""


def interpreter() -> str:
    """The record's key: implementation, minor version, build and architecture."""
    threading = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}{threading}-{platform.machine()}"


def build_shim(folder: Path) -> Path:
    """Compile what the counted process needs in native code."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise UnavailableError("no C compiler was found; on Debian: apt-get install gcc")
    library = folder / "shim.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(FOLDER / "counts_shim.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"valgrind's headers are missing; on Debian: apt-get install valgrind\n{done.stderr}")
    return library


def count(paths: tuple[str, ...]) -> dict[str, int]:
    """Run the paths under callgrind; the instructions of each per call.

    Raises
    ------
    UnavailableError
        valgrind or a C compiler is not installed.
    RuntimeError
        The process that was counted failed.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UnavailableError("valgrind is not installed; on Debian: apt-get install valgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tool = [valgrind, "-q", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no"]
        program = [sys.executable, str(FOLDER / "counts_driver.py"), str(build_shim(folder)), *paths]
        done = subprocess.run(
            [*tool, f"--callgrind-out-file={folder}/out", *program],
            env={**os.environ, "ANABRANCH_CPU_WORKERS": "1", "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"the counted process ended with {done.returncode}:\n{done.stderr}")
        dumps = dict(filter(None, map(read_dump, folder.glob("out.*"))))
    return {path: round((dumps[f"{path} {2 * COUNT}"] - dumps[f"{path} {COUNT}"]) / COUNT) for path in paths}


def read_dump(file: Path) -> tuple[str, int] | None:
    """Return the name that a dump was written under and its instructions; None for the last one, which has no name."""
    text = file.read_text()
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
    total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
    return (name[1], int(total[1])) if name and total else None


def limit(recorded: int) -> int:
    return int(recorded * (1 + TOLERANCE)) + SLACK


def judge(counts: Mapping[str, int], record: Mapping[str, int]) -> dict[str, str]:
    """Say of each path whether it takes more than it did."""
    verdicts = {}
    for path, counted in counts.items():
        recorded = record.get(path)
        other, most = ABOVE.get(path, (path, 0))
        if counted - counts.get(other, counted) > most:
            verdicts[path] = f"MORE than {most} above {other}"
        elif recorded is None:
            verdicts[path] = "not on record"
        elif counted > limit(recorded):
            verdicts[path] = f"MORE than {limit(recorded)}"
        elif recorded > limit(counted):
            verdicts[path] = "fewer: put it on record with --update"
        else:
            verdicts[path] = ""
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the instructions that the hot paths take.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="fail if a path takes more than is on record")
    action.add_argument("--update", action="store_true", help="put the counts on record")
    options = parser.parse_args()
    records = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    record = records.get(interpreter(), {})
    try:
        counts = count(PATHS)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1

    verdicts = judge(counts, record)
    print(f"{'instructions per call':28}{'counted':>10}{'on record':>12}")
    for path, counted in counts.items():
        print(f"{path:28}{counted:>10}{record.get(path, '-'):>12}  {verdicts[path]}".rstrip())
    if options.update:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps({**records, interpreter(): counts}, indent=1, sort_keys=True) + "\n")
        print(f"On record for {interpreter()}.")
        return 0
    if not record:
        print(f"There is nothing on record for {interpreter()}.")
    return int(options.check and any(verdict.startswith("MORE") for verdict in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
