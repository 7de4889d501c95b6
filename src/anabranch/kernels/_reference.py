"""What a kernel function refers to outside itself: helper functions and constants.

Numba freezes globals and closure variables when it compiles, so they are part of what a kernel
is. They are found in the bytecode, which exists also where the source text does not (notebooks,
``exec``), and which names a helper behind a module, such as ``geometry.distance``.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from anabranch.kernels._atomic import atomic_add

_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CLOSURE: Final = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})

# Packages whose functions Numba knows, or whose behaviour is fixed by their version.
_LIBRARIES: Final = frozenset(
    {"builtins", "cmath", "llvmlite", "math", "numba", "numba_cuda_mlir", "numpy", "operator"}
)


class Reference(NamedTuple):
    """A value that a function reads from outside: the dotted name it is written as, and the value."""

    name: str
    value: Any


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those nested in it (lambdas, comprehensions)."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def references(function: FunctionType) -> list[Reference]:
    """List what `function` reads from globals and closure, in the order of the bytecode.

    A chain of attributes is followed through modules and stops at the first other value.
    Undefined names are left out: the compiler reports them with their line.
    """
    closure = _closure(function)
    found: dict[str, Any] = {}
    for code in codes_of(function.__code__):
        name, value, chained = "", None, False
        for instruction in dis.get_instructions(code):
            if chained and instruction.opname in _ATTRIBUTE and isinstance(value, ModuleType):
                attribute = str(instruction.argval)
                chained = hasattr(value, attribute)
                if chained:
                    name, value = f"{name}.{attribute}", getattr(value, attribute)
                    found[name] = value
                continue
            chained = False
            if instruction.opname in _GLOBAL or instruction.opname in _CLOSURE:
                name = str(instruction.argval)
                chained, value = _look_up(function, closure, instruction.opname, name)
                if chained:
                    found[name] = value
    return [Reference(name, value) for name, value in found.items()]


def _closure(function: FunctionType) -> dict[str, Any]:
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return values


def _look_up(function: FunctionType, closure: dict[str, Any], opname: str, name: str) -> tuple[bool, Any]:
    scopes = (closure,) if opname in _CLOSURE else (function.__globals__, vars(builtins))
    for scope in scopes:
        if name in scope:
            return True, scope[name]
    return False, None


def is_library(value: Any) -> bool:
    """Whether `value` was defined by NumPy, Numba, the standard mathematics or, the atomics, here."""
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and (module.partition(".")[0] in _LIBRARIES or module == atomic_add.__module__)


def python_function(value: Any) -> FunctionType | None:
    """Return the Python function behind a helper: the function, or that of a Numba dispatcher."""
    if isinstance(value, FunctionType):
        return None if is_library(value) else value
    if type(value).__module__.startswith("numba.") and isinstance(getattr(value, "py_func", None), FunctionType):
        return python_function(value.py_func)
    return None


def helpers(function: FunctionType) -> list[FunctionType]:
    """List the Python functions that `function` calls, directly or through others."""
    found: dict[FunctionType, None] = {}
    waiting = [function]
    while waiting:
        for reference in references(waiting.pop()):
            helper = python_function(reference.value)
            if helper is not None and helper is not function and helper not in found:
                found[helper] = None
                waiting.append(helper)
    return list(found)


def constants(function: FunctionType) -> list[Any]:
    """List the values that `function` and its helpers read from outside themselves."""
    return [reference.value for part in (function, *helpers(function)) for reference in references(part)]
