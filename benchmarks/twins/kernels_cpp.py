"""The kernels in C++ on the CPU, compiled for this machine when first needed."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from harness import FOLDER, AbsentError, Case
from kernels import LIMIT, Problem, parts
from kernels.device_time import blocking_case, cpu_arrays
from kernels.registration import on_cpu

SOURCE = FOLDER / "kernels" / "kernels.cpp"
BUILD = FOLDER.parent / "build" / "benchmarks"
# No fused multiply-add, which Python kernels have as little: the results are the same to the bit.
OPTIONS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-Wall", "-shared", "-fPIC")


@functools.cache
def library() -> Any:
    """Compile the kernels, if they are not there, and load them."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise AbsentError("there is no g++; on Debian: apt-get install g++")
    command = [compiler, *OPTIONS, f"-DLIMIT={LIMIT}", str(SOURCE)]
    key = hashlib.sha256(repr(command).encode() + SOURCE.read_bytes() + _cpu().encode()).hexdigest()[:16]
    path = BUILD / f"kernels-{key}.so"
    if not path.is_file():
        BUILD.mkdir(parents=True, exist_ok=True)
        # Under another name first: another process may be at it too.
        unfinished = path.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", str(unfinished)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the kernels in C++ do not compile:\n{done.stderr}")
        unfinished.replace(path)
    return ctypes.CDLL(str(path))


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    return next((line for line in information.read_text().splitlines() if line.startswith("flags")), "")


@on_cpu("c++")
def cpp(problem: Problem) -> Iterator[Case]:
    arrays = cpu_arrays(problem)
    scalars = [part for scalar in problem.scalars for part in parts(scalar)]
    strides = [stride // array.itemsize for array in arrays for stride in array.strides]
    call = partial(
        getattr(library(), problem.name),
        (ctypes.c_int64 * len(problem.dim))(*problem.dim),
        (ctypes.c_double * len(scalars))(*scalars),
        (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)),
        (ctypes.c_int64 * len(strides))(*strides),
    )
    yield from blocking_case(problem, call, arrays[-1])
