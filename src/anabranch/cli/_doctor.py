"""``anabranch doctor``: checks the machine and the installation, and suggests fixes."""

from __future__ import annotations

import difflib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

import anabranch as ab
from anabranch.cli._info import why_no_gpu
from anabranch.cli._table import show
from anabranch.cli._versions import driver_version, too_old, version_of
from anabranch.kernels import _cache

OK: Final = "ok"
NOTE: Final = "note"
PROBLEM: Final = "problem"

VARIABLES: Final = (
    "ANABRANCH_BOUNDS",
    "ANABRANCH_CACHE_DIR",
    "ANABRANCH_CPU_DEVICES",
    "ANABRANCH_CPU_WORKERS",
    "ANABRANCH_CUDA_SANITIZER",
    "ANABRANCH_DEVICE",
    "ANABRANCH_HAZARDS",
)
"""The variables that this package reads."""

_CUDA_PACKAGES: Final = ("numba-cuda-mlir", "cuda-core", "cuda-bindings")
_DRIVER_FILE: Final = Path("/proc/driver/nvidia/version")


class Finding(NamedTuple):
    """The subject of a check, its state - ``"ok"``, ``"note"`` or ``"problem"`` - and the fix, if there is one."""

    subject: str
    state: str
    text: str
    advice: str = ""


def doctor() -> None:
    """Print the findings, each with what to do about it.

    Raises
    ------
    SystemExit
        With the code 1 if anything is a problem.
    """
    findings = list(examine())
    show(["", "", ""], [finding[:3] for finding in findings], sys.stdout)
    for finding in findings:
        if finding.advice:
            print(f"{finding.subject}: {finding.advice}")
    if any(finding.state == PROBLEM for finding in findings):
        sys.exit(1)


def examine() -> Iterator[Finding]:
    """Yield the findings about this machine and this environment."""
    wrong = _why_no_device()
    yield from _variables(wrong)
    yield _devices(wrong)
    yield _gpu(wrong)
    yield _kernels_for_gpus(wrong)
    yield from _old_packages()
    yield _cache_folder()
    yield _kernel(wrong)


def _why_no_device() -> str:
    """Return why no program can run here, or nothing."""
    try:
        ab.current_device()
    except (ab.Error, ValueError) as error:
        return str(error)
    return ""


def _variables(wrong: str) -> Iterator[Finding]:
    for name in sorted(name for name in os.environ if name.startswith("ANABRANCH_")):
        if wrong.startswith(f"{name} "):
            yield Finding(name, PROBLEM, wrong.removeprefix(f"{name} "), "set it to what can be used, or unset it")
        elif name in VARIABLES:
            yield Finding(name, OK, os.environ[name])
        else:
            near = difflib.get_close_matches(name, VARIABLES, 1)
            advice = f"unset it{f', or set {near[0]}' if near else ''}"
            yield Finding(name, PROBLEM, "is no variable that anything reads", advice)


def _devices(wrong: str) -> Finding:
    if wrong:
        return Finding("devices", PROBLEM, f"none can be used: {wrong}")
    return Finding(
        "devices", OK, f"{', '.join(device.alias for device in ab.devices())}; first {ab.current_device().alias}"
    )


def _gpu(wrong: str) -> Finding:
    driver = driver_version()
    if wrong:
        return Finding("GPU", NOTE, "not looked for, since no device can be used")
    missing = why_no_gpu()
    if missing is None:
        names = ", ".join(device.name for device in ab.devices("cuda"))
        return Finding("GPU", OK, f"{names}; a driver of CUDA {_dotted(driver)}" if driver else names)
    if not _DRIVER_FILE.exists():
        return Finding("GPU", NOTE, "none; everything runs on the CPU")
    advice = "install the user-space part of the driver (libcuda.so.1), or look at CUDA_VISIBLE_DEVICES"
    return Finding("GPU", PROBLEM, missing, advice)


def _dotted(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))


def _kernels_for_gpus(wrong: str) -> Finding:
    versions = {name: version_of(name) for name in _CUDA_PACKAGES}
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version is not None)
    driver = driver_version()
    bindings = versions["cuda-bindings"]
    if bindings is not None and driver is not None and int(bindings.partition(".")[0]) > driver[0]:
        advice = f"pip install 'anabranch[cu{driver[0]}]', or a newer driver"
        return Finding(
            "kernels for GPUs", PROBLEM, f"{found}, newer than the driver, of CUDA {_dotted(driver)}", advice
        )
    if None not in versions.values():
        return Finding("kernels for GPUs", OK, found)
    if wrong or not ab.devices("cuda"):
        return Finding("kernels for GPUs", NOTE, "no compiler, and no GPU that needs one")
    missing = ", ".join(name for name, version in versions.items() if version is None)
    advice = "pip install 'anabranch[cu13]', or 'anabranch[cu12]' for a driver of CUDA 12"
    return Finding("kernels for GPUs", PROBLEM, f"not installed: {missing}", advice)


def _old_packages() -> Iterator[Finding]:
    for package, installed, least in too_old():
        yield Finding(
            package, PROBLEM, f"{installed} is older than {least}", f"pip install --upgrade '{package}>={least}'"
        )


def _cache_folder() -> Finding:
    try:
        folder = _cache.directory()
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except (OSError, RuntimeError) as error:
        return Finding("cache folder", PROBLEM, str(error), "set ANABRANCH_CACHE_DIR to a folder of yours")
    advice = f"set ANABRANCH_CACHE_DIR to a folder of yours, or mend this one: {folder}"
    if not nearest.is_dir():
        return Finding("cache folder", PROBLEM, f"{nearest} is no folder", advice)
    found = nearest.stat()
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("cache folder", PROBLEM, f"{nearest} cannot be written: kernels compile in each process", advice)
    if nearest == folder and found.st_uid != os.geteuid():
        return Finding("cache folder", PROBLEM, f"{folder} belongs to user {found.st_uid}: it is not used", advice)
    if nearest == folder and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Finding(
            "cache folder", PROBLEM, f"{folder} may be written by others: it is not used", f"chmod go-w '{folder}'"
        )
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return Finding("cache folder", PROBLEM, f"{nearest} cannot be written: {error.strerror}", advice)
    entries = sum(1 for path in folder.rglob("*") if path.is_file())
    return Finding("cache folder", OK, f"{folder}, {entries} kernels")


def _kernel(wrong: str) -> Finding:
    versions = ", ".join(f"{name} {version_of(name) or 'missing'}" for name in ("numpy", "numba", "llvmlite"))
    if find_spec("numba") is None:
        return Finding("kernels", NOTE, versions, "pip install 'anabranch[kernels]' for kernels written in Python")
    began = perf_counter()
    if wrong:
        return Finding("kernels", NOTE, f"{versions}; none was tried, since no device can be used")
    try:
        array = ab.zeros(8, device="cpu")
        ab.launch(_add_index, 8, array)
        right = array.numpy().tolist() == list(range(8))
    except Exception as error:  # whatever keeps a kernel from running is a finding
        return Finding("kernels", PROBLEM, f"{versions}: {type(error).__name__}: {error}", "reinstall these packages")
    took = f"a kernel on cpu:0 took {1e3 * (perf_counter() - began):.0f} ms the first time"
    if not right:
        return Finding("kernels", PROBLEM, f"{versions}; a kernel computed something wrong", "report it")
    return Finding("kernels", OK, f"{versions}; {took}")


@ab.kernel
def _add_index(i, x):  # type: ignore[no-untyped-def]  # annotations are declarations of access
    x[i] += i
