"""``anabranch info``."""

from __future__ import annotations

import os
import sys
from platform import python_version
from typing import Final

import anabranch as ab
from anabranch._core import core
from anabranch.cli._table import show
from anabranch.cli._versions import version_of

# Packages that the library uses, and compilers of kernels: for CPUs, from Python for GPUs, from CUDA C++.
PACKAGES: Final = ("anabranch", "numpy", "numba", "numba-cuda-mlir", "cuda-core")

# Variables that change how programs run, besides those that begin with ANABRANCH_.
VARIABLES: Final = (
    "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM",
    "CUDA_VISIBLE_DEVICES",
    "NUMBA_DISABLE_JIT",
    "PYTHON_GIL",
)


def info() -> None:
    """Show devices, the default stream and why it is that one, versions, and environment variables.

    Raises
    ------
    SystemExit
        No device can be used.
    """
    lock = "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"
    versions = [(name, version_of(name) or "not installed") for name in PACKAGES]
    show(["package", "version"], [("python", f"{python_version()}, interpreter lock {lock}"), *versions], sys.stdout)
    show(["environment variable", "value"], variables_in_force() or [("none is set", "")], sys.stdout)
    try:
        current, devices = ab.current_device(), ab.devices()
    except (ab.Error, ValueError) as error:
        sys.exit(f"No device can be used: {error}")
    show(["device", "name", "workers", "memory", "priorities"], [_describe(device) for device in devices], sys.stdout)
    missing = why_no_gpu()
    if missing is not None:
        print(f"{missing}\n")
    chosen_by = "ANABRANCH_DEVICE" if os.environ.get("ANABRANCH_DEVICE") else "the devices there are"
    stream, reason = core.default_stream_reason()
    show(
        ["default", "", "because of"],
        [("device", current.alias, chosen_by), ("stream", stream, reason)],
        sys.stdout,
    )


def variables_in_force() -> list[tuple[str, str]]:
    """Return the environment variables that change how programs run, with their values."""
    return sorted(item for item in os.environ.items() if item[0].startswith("ANABRANCH_") or item[0] in VARIABLES)


def why_no_gpu() -> str | None:
    """Return why there is no CUDA device; None if there is one."""
    if not ab.devices("cuda"):
        try:
            ab.Device("cuda:0")
        except ab.DeviceError as error:
            return str(error)
    return None


def _describe(device: ab.Device) -> tuple[str, ...]:
    lowest, highest = device.priority_range
    free, total = (f"{size / 2**30:.1f}" for size in (device.free_memory, device.total_memory))
    return device.alias, device.name, str(device.workers), f"{free} of {total} GiB free", f"{lowest} to {highest}"
