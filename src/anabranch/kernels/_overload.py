"""Overloads that other packages registered with the compilers: `numba.extending.overload` and related functions.

If such an overload may apply within a kernel, the kernel's own code does not decide its result, so the disk cache is
not used. The compilers' registries are read as they are, without importing a compiler or refreshing its contexts.
"""

from __future__ import annotations

import enum
import sys
import threading
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple

from anabranch.kernels._reference import LIBRARIES, is_library, library_name

_OURS: Final = "anabranch"
_CLOSURES: Final = 3  # how deep Numba's decorators may wrap an overload in closures
_TYPES: Final = (int, float, complex, bool, str, bytes, tuple, list, set, dict, range, slice, enum.Enum)

_lock: Final = threading.Lock()
_scans: Final[dict[tuple[str, frozenset[str]], _Scan]] = {}


class Overloads(NamedTuple):
    """Values that are overloaded in this process.

    Attributes
    ----------
    everything : bool
        An overload affects a whole library or the language, which any function may use.
    values : dict of int to object
        Overloaded functions and other objects, by id.
    attributes : set of str
        Names of overloaded attributes and methods that the libraries' own types lack.
    """

    everything: bool
    values: dict[int, Any]
    attributes: frozenset[str]


class _Registries(NamedTuple):
    typing: list[Any]
    lowering: list[Any]


def overloads(backend: str, packages: frozenset[str] = frozenset()) -> Overloads:
    """Return the overloads that do not come from the compiler itself.

    Parameters
    ----------
    backend : str
        "cpu" for Numba, "cuda" for numba-cuda-mlir.
    packages : set of str
        Top-level packages whose registrations are trusted, since every process loads them.
    """
    with _lock:
        scan = _scans.pop((backend, packages), None) or _Scan(packages)
        try:
            registries = _cpu() if backend == "cpu" else _cuda()
            if registries is not None:
                scan.read(registries)
        except Exception:  # another thread is importing the compiler, or its version is unknown
            return Overloads(True, {}, frozenset())
        _scans[backend, packages] = scan
        return Overloads(scan.everything, dict(scan.values), frozenset(scan.attributes))


def _cpu() -> _Registries | None:
    modules: Any = sys.modules
    if "numba.core.registry" not in modules:
        return None
    target = modules["numba.core.registry"].cpu_target
    return _Registries(
        [modules["numba.core.typing.templates"].builtin_registry, *target.typing_context._registries],
        [modules["numba.core.imputils"].builtin_registry, *target.target_context._registries],
    )


def _cuda() -> _Registries | None:
    modules: Any = sys.modules
    if "numba_cuda_mlir.extending" not in modules:
        return None
    extending = modules["numba_cuda_mlir.extending"]
    within = "numba_cuda_mlir.numba_cuda."
    typing = [extending.typing_registry, modules[within + "typing.templates"].builtin_registry]
    lowering = [extending.lowering_registry, modules[within + "core.imputils"].builtin_registry]
    if "numba_cuda_mlir.descriptor" in modules:
        target = modules["numba_cuda_mlir.descriptor"].mlir_target
        typing += getattr(target._typingctx, "_registries", ())
        lowering += getattr(target._targetctx, "_registries", ())
    return _Registries(typing, lowering)


class _Scan:
    """Overloads found in the registries so far. Registries only grow, so each entry is read once."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.everything = False
        self.values: dict[int, Any] = {}
        self.attributes: set[str] = set()
        self._known = LIBRARIES | {_OURS} | packages
        self._read: dict[int, tuple[list[Any], int]] = {}
        self._foreign_classes: dict[type, bool] = {}

    def read(self, registries: _Registries) -> None:
        """Read the entries registered since the last call."""
        for registry in registries.typing:
            for template in self._new(registry.functions):
                if self._is_foreign_class(template):
                    self._note(template.key)
            for template in self._new(registry.attributes):
                if self._is_foreign_class(template) and not self._is_foreign_type(template.key):
                    self._note_attributes(_names_of(template))
            for value, kind in self._new(registry.globals):
                if any(map(self._is_foreign_class, getattr(kind, "templates", [type(kind)]))):
                    self._note(value)
        for registry in registries.lowering:
            for implementation, key, kinds in self._new(registry.functions):
                if self._is_foreign(implementation) and not any(map(self._is_foreign_type, kinds)):
                    self._note(key)
            for implementation, name, kinds in [*self._new(registry.getattrs), *self._new(registry.setattrs)]:
                if self._is_foreign(implementation) and not any(map(self._is_foreign_type, kinds)):
                    self._note_attributes(None if name is None else {name})
            for implementation, kinds in [*self._new(registry.casts), *self._new(registry.constants)]:
                if self._is_foreign(implementation) and not any(map(self._is_foreign_type, kinds)):
                    self.everything = True

    def _new(self, entries: list[Any]) -> list[Any]:
        _, count = self._read.get(id(entries), (entries, 0))
        new = entries[count:]
        self._read[id(entries)] = entries, count + len(new)
        return new

    def _note(self, key: Any) -> None:
        if isinstance(key, tuple):  # a method: its type and its name
            if not self._is_foreign_type(key[0]):
                self._note_attributes({key[1]})
        elif _is_of_library(key):
            self.everything = True
        else:
            self.values[id(key)] = key

    def _note_attributes(self, names: set[str] | None) -> None:
        numpy: Any = sys.modules.get("numpy")
        own = (*_TYPES, numpy.ndarray, numpy.float64, numpy.datetime64, numpy.record)
        if names is None or any(hasattr(kind, name) for kind in own for name in names):
            self.everything = True
        else:
            self.attributes |= names

    def _is_foreign_class(self, kind: type) -> bool:
        """Whether a class or one of its bases has a foreign function."""
        for base in kind.__mro__:
            if base not in self._foreign_classes:
                functions = [function for value in vars(base).values() for function in _functions(value)]
                self._foreign_classes[base] = (
                    any(map(self._is_foreign, functions))
                    if functions
                    else not (self._knows(base.__module__) or base.__module__ == "abc")
                )
            if self._foreign_classes[base]:
                return True
        return False

    def _is_foreign(self, implementation: Any, depth: int = _CLOSURES) -> bool:
        """Whether a function is foreign, or wraps a foreign one."""
        for function in _functions(implementation):
            module = function.__globals__.get("__name__")
            if not self._knows(module):
                return True
            if str(module).partition(".")[0] == _OURS or not depth:
                continue  # functions wrapped by ours belong to the kernel and count as its code
            if any(self._is_foreign(value, depth - 1) for value in _captured(function)):
                return True
        return False

    def _is_foreign_type(self, kind: Any) -> bool:
        return not self._knows((kind if isinstance(kind, type) else type(kind)).__module__)

    def _knows(self, module: Any) -> bool:
        return isinstance(module, str) and module.partition(".")[0] in self._known


def _functions(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, partial):
        value = value.func
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        yield value


def _captured(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _names_of(template: Any) -> set[str] | None:
    """Return the attributes that an attribute template resolves; None if it may resolve any."""
    name = getattr(template, "_attr", None)
    if isinstance(name, str):
        return {name}
    if callable(getattr(template, "generic_resolve", None)):
        return None
    prefix = "resolve_"
    return {name.removeprefix(prefix) for name in dir(template) if name.startswith(prefix)}


def _is_of_library(key: Any) -> bool:
    if isinstance(key, FunctionType):
        return is_library(key)
    module = getattr(key, "__module__", None)
    if isinstance(module, str):
        return module.partition(".")[0] in LIBRARIES
    return type(key).__name__ != "ufunc" or library_name(key) is not None
