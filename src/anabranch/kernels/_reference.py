"""References of a kernel function to objects outside it: helper functions and constants.

Numba freezes globals and closure variables at compilation, so they are part of a kernel. They are read from the
bytecode, which exists even without source text (notebooks, ``exec``) and shows helpers that are accessed through a
module, such as ``geometry.distance``.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from anabranch.kernels._atomic import atomic_add
from anabranch.kernels._block import barrier

_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CLOSURE: Final = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NOTHING: Final = frozenset({"CACHE", "EXTENDED_ARG", "NOP"})

# Packages whose functions Numba supports, or whose versions fix their behaviour.
LIBRARIES: Final = frozenset(
    {"_operator", "builtins", "cmath", "llvmlite", "math", "numba", "numba_cuda_mlir", "numpy", "operator"}
)

# Value of an undefined name: the compiler reports the name with its line.
UNDEFINED: Final = object()


Read: TypeAlias = tuple[str, CellType | tuple[dict[str, Any], str], Any]
"""A name that a function reads, where its value is found, and the value."""


class Reference(NamedTuple):
    """A value that a function reads from outside, with its dotted name."""

    name: str
    value: Any


class Load(NamedTuple):
    """A read of an outside value, and the value now.

    Attributes
    ----------
    name : str
        The dotted name, up to the first value that is not a module.
    value : object
        The value; `UNDEFINED` if there is none; a module if the code uses the module itself.
    is_closure : bool
        Whether the name is a closure variable.
    is_exact : bool
        Whether the value is in the dictionary of each module along the name, found without running code.
    """

    name: str
    value: Any
    is_closure: bool
    is_exact: bool


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and the code objects nested in it (lambdas, comprehensions)."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def loads(function: FunctionType) -> list[Load]:
    """List the distinct reads of globals and closure variables by `function`, in the order of the bytecode."""
    closure = _closure(function)
    found: dict[tuple[bool, str], Load] = {}
    for code in codes_of(function.__code__):
        for is_closure, names in _chains(code):
            if is_closure and names[0] not in closure:
                continue  # a local variable of the function, read by a nested function
            load = _follow(closure if is_closure else _globals(function, names[0]), is_closure, names)
            found[is_closure, load.name] = load
    return list(found.values())


def references(function: FunctionType) -> list[Reference]:
    """List the values that `function` reads from globals and closure, in the order of the bytecode.

    A chain of attributes is followed through modules, up to the first other value. Undefined names are left out: the
    compiler reports them with their line.
    """
    return [Reference(load.name, load.value) for load in loads(function) if load.value is not UNDEFINED]


def _chains(code: CodeType) -> Iterator[tuple[bool, list[str]]]:
    """Yield each outside read: whether it is of a closure variable, and the parts of its name: a.b.c."""
    import dis

    names: list[str] = []
    is_closure = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in _NOTHING:
            continue
        if names and instruction.opname in _ATTRIBUTE:
            names.append(str(instruction.argval))
            continue
        if names:
            yield is_closure, names
        is_closure = instruction.opname in _CLOSURE
        names = [str(instruction.argval)] if is_closure or instruction.opname in _GLOBAL else []
    if names:
        yield is_closure, names


def constant_reads(function: FunctionType) -> Iterator[Read]:
    """Yield what a kernel and its helpers read from outside, except from libraries."""
    for part in (function, *helpers(function)):
        for read in outside_reads(part):
            if library_name(read[2]) is None:
                yield read


def outside_reads(function: FunctionType) -> Iterator[Read]:
    """Yield what a function reads from outside, except modules.

    Each as its name, where it is found - a closure's cell, or a dictionary and a key in it - and the value.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for load in loads(function):
        if load.value is UNDEFINED or isinstance(load.value, ModuleType):
            continue
        *modules, key = load.name.split(".")
        scope: Any = function.__globals__
        if load.is_closure and not modules:
            yield load.name, cells[key], load.value
            continue
        for number, module in enumerate(modules):
            found = cells[module].cell_contents if load.is_closure and number == 0 else scope.get(module)
            scope = vars(found)
        if load.is_exact and key in scope:
            yield load.name, (scope, key), load.value


def _follow(scope: dict[str, Any], is_closure: bool, names: list[str]) -> Load:
    name, value, is_exact = names[0], scope.get(names[0], UNDEFINED), True
    for attribute in names[1:]:
        if not isinstance(value, ModuleType):
            break
        is_exact = is_exact and type(value) is ModuleType and attribute in vars(value)
        name, value = f"{name}.{attribute}", getattr(value, attribute, UNDEFINED)
    return Load(name, value, is_closure, is_exact)


def _closure(function: FunctionType) -> dict[str, Any]:
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            values[name] = UNDEFINED
    return values


def _globals(function: FunctionType, name: str) -> dict[str, Any]:
    return function.__globals__ if name in function.__globals__ else vars(builtins)


def library_name(value: Any) -> str | None:
    """Return the dotted name of `value` in a library; None if it belongs to none.

    Libraries are NumPy, Numba, the standard mathematics, and the atomics of this package. A name that was copied to
    another function, as by `functools.wraps`, does not count.
    """
    if isinstance(value, FunctionType):
        if not is_library(value):
            return None
    elif type(value).__module__.partition(".")[0] not in LIBRARIES:
        return None
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    module = getattr(value, "__module__", None)
    if module is None and type(value).__name__ == "ufunc":
        module = "numpy"
    if not isinstance(name, str) or not isinstance(module, str) or not _is_library_module(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else None


def is_library(function: FunctionType) -> bool:
    """Whether a library defines the function; see `library_name`."""
    module = function.__globals__.get("__name__")
    return (
        isinstance(module, str)
        and _is_library_module(module)
        and module in sys.modules
        and vars(sys.modules[module]) is function.__globals__
    )


def _is_library_module(name: str) -> bool:
    return name.partition(".")[0] in LIBRARIES or name in (atomic_add.__module__, barrier.__module__)


def python_function(value: Any) -> FunctionType | None:
    """Return the Python function of a helper: the helper itself, or the function of a Numba dispatcher."""
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
    """List the outside values that `function` and its helpers read."""
    return [reference.value for part in (function, *helpers(function)) for reference in references(part)]
