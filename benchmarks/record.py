"""What a saved result says besides the values: the machine, the versions, and the name of its files."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from gpu import DEVICE, PREFIX
from harness import OURS, Result
from kernels import PREFIX as KERNELS

import anabranch as ab

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# Whose versions go on record.
PACKAGES = (
    "numpy",
    "numba",
    "numba-cuda-mlir",
    "cuda-core",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
    "triton",
    "warp-lang",
)


def machine() -> dict[str, Any]:
    """Describe what the values depend on."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)
        name = found[1] if found else name
    versions = {}
    for package in (OURS, *PACKAGES):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": name,
        "cores": os.cpu_count(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "free_threaded": FREE_THREADED,
        "packages": versions,
    }


def gpu() -> dict[str, str]:
    """Describe the CUDA device and its driver."""
    information = Path("/proc/driver/nvidia/version")
    version = re.search(r"\d+\.\d+(\.\d+)?", information.read_text()) if information.is_file() else None
    return {"gpu": ab.Device(DEVICE).name, "driver": version[0] if version else "unknown"}


def setting(values: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Describe the day and the machine, with its GPU if one of the values was measured there."""
    about = {"date": datetime.date.today().isoformat(), **machine()}
    # `cuda.*`, `copy.cuda.*`, `math.cuda.*` and `kernels.cuda.*`.
    return about | gpu() if any(f".{PREFIX}" in f".{benchmark}" for benchmark in values) else about


def heading(about: dict[str, Any]) -> str:
    """Return the setting in a line."""
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    place = f"{about['cores']} cores of {about['cpu']}"
    if "gpu" in about:
        place = f"{about['gpu']} (driver {about['driver']}), {place}"
    return f"{about['date']}, {place}, {about['python']}; {packages}"


def measured(all_results: dict[str, dict[str, Result]]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, str]]]:
    """Return the values by benchmark and implementation, and in the same way why others have none."""
    values: dict[str, dict[str, Any]] = {}
    absent: dict[str, dict[str, str]] = {}
    for benchmark, results in all_results.items():
        for name, result in results.items():
            if result.samples:
                first, third = result.quartiles
                value = {"median": result.value, "first_quartile": first, "third_quartile": third, "unit": result.unit}
                values.setdefault(benchmark, {})[name] = {**value, "samples": len(result.samples)}
            elif result.absent:
                absent.setdefault(benchmark, {})[name] = result.absent
    return values, absent


def stem_of(about: dict[str, Any], values: dict[str, dict[str, Any]]) -> str:
    """Return the files' name without its ending.

    Runs of kernels, of first kernels, and of copies and operators on a GPU alone stand beside the others of their day.
    """
    what, groups = "", {name.partition(".")[0] for name in values}
    if groups in ({"kernels"}, {"first"}):
        what = f"{groups.pop()}-"
    elif "gpu" in about and not any(name.startswith((PREFIX, KERNELS)) for name in values):
        what = "arrays-"
    where = "-".join(re.findall(r"[a-z0-9]+", about["gpu"].lower())) + "-" if "gpu" in about else ""
    build = "t" if about["free_threaded"] else ""
    return f"{about['date']}-{what}{where}python{sys.version_info[0]}.{sys.version_info[1]}{build}"
