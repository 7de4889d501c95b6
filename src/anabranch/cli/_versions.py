"""Versions of packages and of the GPU's driver, and those that this package needs."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

_NEEDED: Final = re.compile(r"(?P<package>[\w-]+)(?:\[[^]]*\])?>=(?P<least>[\d.]+)")


def version_of(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def too_old() -> Iterator[tuple[str, str, str]]:
    """Yield each installed package that is older than this one needs, with its version and the least that will do."""
    for package, least in sorted(_needed()):
        installed = version_of(package)
        if installed is not None and _numbers(installed) < _numbers(least):
            yield package, installed, least


def driver_version() -> tuple[int, int] | None:
    """Return the newest version of CUDA that the GPU's driver supports; None without a driver. Starts nothing."""
    number = ctypes.c_int()
    try:
        known = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)) == 0
    except (OSError, AttributeError):
        return None
    # A library of stubs, as toolkits have one, knows no version.
    return divmod(number.value // 10, 100) if known and number.value else None


def _needed() -> set[tuple[str, str]]:
    try:
        texts = requires("anabranch") or []
    except PackageNotFoundError:  # a copy that was not installed
        return set()
    return {(found["package"], found["least"]) for text in texts if (found := _NEEDED.match(text))}


def _numbers(text: str) -> list[int]:
    """Return the numbers of a version that come before what marks it as a candidate or as somebody's own."""
    return [int(number) for number in re.findall(r"\d+", re.split(r"[a-z+]", text)[0])]
