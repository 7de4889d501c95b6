"""Python functions that a kernel calls, as overloads for numba-cuda-mlir, and those that stand for what it lacks."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir import extending
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._in_python import has_of_more, lacking, of_more
from anabranch.kernels._reference import helpers, python_function, references

# Overload templates of registered helpers, by the id of the function that the kernel calls.
_registered: Final[dict[int, Any]] = {}


def register_helpers(function: FunctionType) -> None:
    """Register the plain Python functions that kernels call, and those that Numba has decorated for the CPU.

    Earlier compilations of them are dropped, since they have outdated globals, and the checks and places of another
    kernel.
    """
    for template in _registered.values():
        template._impl_cache.clear()
        template._compiled_overloads.clear()
    for part in (function, *helpers(function)):
        for _, value in references(part):
            if id(value) not in _registered and not _is_known(value):
                _register(value, lacking("cuda", value) or python_function(value))


def _register(value: Any, helper: FunctionType | None) -> None:
    if helper is None and not has_of_more(value):
        return

    @extending.overload(value, strict=False, typing_registry=extending.typing_registry)  # type: ignore[untyped-decorator]
    def implement(*args: Any, **kwargs: Any) -> FunctionType | None:
        return helper or of_more(value, len(args))

    _, kind = extending.typing_registry.globals[-1]
    _registered[id(value)] = kind.templates[-1]  # the registry keeps the value alive


def _is_known(value: Any) -> bool:
    """Whether the compiler itself implements a function, such as one decorated for it."""
    return type(value).__module__.startswith("numba_cuda_mlir.")


def type_of_value(value: Any) -> Any:
    """Return the type of a function that Numba has decorated, whose own type the compiler refuses, or None."""
    if not type(value).__module__.startswith("numba.") or id(value) not in _registered:
        return None
    return types.Function(_registered[id(value)])


def type_of_own(function: Any) -> Any:
    """Return the type of what stands for a function alone, without the compiler's own overloads; None for any other."""
    if lacking("cuda", function) is None or id(function) not in _registered:
        return None
    return types.Function(_registered[id(function)])
