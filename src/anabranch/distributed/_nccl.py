"""NCCL through nccl4py."""

from __future__ import annotations

import importlib.util


def is_installed() -> bool:
    """Return whether nccl4py is there."""
    return importlib.util.find_spec("nccl") is not None


def require() -> None:
    """Raise ModuleNotFoundError where nccl4py is not installed."""
    if not is_installed():
        raise ModuleNotFoundError("collectives between GPUs need nccl4py: pip install anabranch[nccl]", name="nccl")
