"""Importing the package in a fresh interpreter. Run as a program, it shows where the time goes.

python benchmarks/bench_import.py [MODULE]
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness import OURS, AbsentError, Case, Counted, implementation, in_fresh_process

# Started with -S, so that no .pth file of this environment runs. `site` and what it imports are in every interpreter.
PRELUDE = "import site, sys; sys.path += sys.argv[1:]; "
TIMED = PRELUDE + "import time; begin = time.perf_counter_ns(); import {module}; print(time.perf_counter_ns() - begin)"


def folders(module: str) -> list[str]:
    """The folders that hold a module as a user has it installed, and NumPy, which it may need."""
    found = []
    for name in (module, "numpy"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise AbsentError(f"{name} is not installed")
        found.append(str(Path(spec.origin).parents[1]))
    if module == OURS and not list(Path(found[0], OURS, "_core").glob("core.*.so")):
        raise AbsentError("the package is installed for development; `make bench` measures an installation")
    return found


def imports(module: str) -> Iterator[Case]:
    paths = folders(module)
    code = TIMED.format(module=module)
    yield Counted(lambda _: float(in_fresh_process(code, *paths, options=("-S", "-P"))), 1, "ns", rounds=31)


@implementation(OURS)("import")
def import_package() -> Iterator[Case]:
    """`import anabranch`."""
    return imports(OURS)


@implementation("numpy")("import")
def import_numpy() -> Iterator[Case]:
    """`import numpy`."""
    return imports("numpy")


def main() -> None:
    parser = argparse.ArgumentParser(description="Show what an import spends its time on.")
    parser.add_argument("module", nargs="?", default=OURS)
    module = parser.parse_args().module
    code = f"{PRELUDE}import {module}"
    command = [sys.executable, "-S", "-P", "-X", "importtime", "-c", code, *folders(module)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in lines if line.startswith("import time:")]
    start = next(index for index, row in enumerate(rows) if row[2].strip() == "site")
    print(f"{'self us':>9}  {'with what it imports':>20}  module")
    for own, cumulative, name in sorted(rows[start + 1 :], key=lambda row: -int(row[0])):
        print(f"{own.strip():>9}  {cumulative.strip():>20}  {name.strip()}")


if __name__ == "__main__":
    main()
