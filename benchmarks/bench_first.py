"""The first kernel of a process, from the interpreter's start of the program to its result.

Cold: nothing is compiled yet, in a folder for compiled code of its own. Warm: another process has compiled it before.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from bench_import import folders
from harness import OURS, AbsentError, Case, Counted, implementation

# Each prints the nanoseconds that it took.
PROGRAMS = {
    OURS: """
        import anabranch as ab

        @ab.kernel
        def add(i, x: ab.In, y: ab.InOut):
            y[i] += x[i]

        x, y = ab.ones(1000, device="cpu"), ab.ones(1000, device="cpu")
        ab.launch(add, 1000, x, y)
        assert y.numpy()[999] == 2
        """,
    "numba": """
        import numba
        import numpy

        @numba.njit(cache=True)
        def add(x, y):
            for i in range(y.size):
                y[i] += x[i]

        x, y = numpy.ones(1000, "float32"), numpy.ones(1000, "float32")
        add(x, y)
        assert y[999] == 2
        """,
    "warp": """
        import warp as wp

        wp.config.quiet = True
        wp.config.log_level = 40

        @wp.kernel
        def add(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = y[i] + x[i]

        x, y = wp.ones(1000, dtype=float, device="cpu"), wp.ones(1000, dtype=float, device="cpu")
        wp.launch(add, 1000, inputs=[x, y], device="cpu")
        assert y.numpy()[999] == 2
        """,
}
CACHES = ("ANABRANCH_CACHE_DIR", "NUMBA_CACHE_DIR", "WARP_CACHE_PATH")


def run(library: str, folder: Path) -> float:
    """Run the program of a library with its compiled code in a folder; return how long it took, in nanoseconds."""
    program = folder / "program.py"
    if not program.exists():  # Numba's cache looks at the time of the file
        body = dedent(PROGRAMS[library])
        program.write_text(
            f"import time\nbegin = time.perf_counter_ns()\n{body}\nprint(time.perf_counter_ns() - begin)\n"
        )
    caches = {name: str(folder / "cache") for name in CACHES}
    command = [sys.executable, "-P", str(program)]
    done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


@functools.cache
def scratch() -> Path:
    """A folder until this process ends, in which a library's warm program finds what its cold one has compiled."""
    path = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, path)
    return Path(path)


def first_kernel(library: str, warm: bool) -> Iterator[Case]:
    if library == OURS:
        folders(OURS)  # as a user has it installed
    if importlib.util.find_spec("numba" if library == OURS else library) is None:
        raise AbsentError(f"{library} is not installed")
    folder = scratch() / library

    def measure(_: int) -> float:
        if not warm:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        return run(library, folder)

    yield Counted(measure, 1, "ns", rounds=7, warms_up=warm)


def register(library: str) -> None:
    @implementation(library)("first.kernel_cold")
    def cold() -> Iterator[Case]:
        """A program from its first line to the result of its first kernel, with nothing compiled before."""
        return first_kernel(library, warm=False)

    @implementation(library)("first.kernel_warm")
    def warm() -> Iterator[Case]:
        """The same with a kernel that another process has compiled."""
        return first_kernel(library, warm=True)


for _library in PROGRAMS:
    register(_library)
