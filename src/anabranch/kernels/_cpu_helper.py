"""Makes plain Python functions callable from kernels."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final
from weakref import WeakSet

from numba import extending
from numba.core.registry import cpu_target

from anabranch.kernels._reference import helpers

_registered: Final[WeakSet[FunctionType]] = WeakSet()


def register_helpers(function: FunctionType) -> None:
    """Tell Numba to compile every plain Python function that `function` calls, directly or not.

    Functions that Numba knows (its own, and those another package overloads) are left alone.
    Called under Numba's compiler lock.
    """
    for helper in helpers(function):
        if helper not in _registered and not _is_known(helper):
            extending.register_jitable(helper)
            _registered.add(helper)


def _is_known(helper: Any) -> bool:
    context: Any = cpu_target.typing_context
    context.refresh()
    try:
        return context.resolve_value_type(helper) is not None
    except Exception:  # Numba's and NumPy's: it has no type
        return False
