"""A digest of everything that decides what a function does, for the disk cache.

Bytecode, constants, defaults, and the values of the globals and closure variables it reads, for
the function and for every Python function it calls. A value whose meaning cannot be pinned down
(an instance of some class, a foreign function) makes the kernel uncacheable rather than wrong.
"""

from __future__ import annotations

import enum
import hashlib
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from anabranch.kernels._reference import is_library, references

_MAX_ARRAY_BYTES: Final = 1 << 20
_ATOMS: Final = (bool, int, float, complex, str, bytes, type(None), type(...))


class UncacheableError(Exception):
    """A function refers to something that cannot be pinned down."""


def fingerprint(function: FunctionType) -> bytes:
    """Return a digest that changes whenever what `function` computes could change.

    Raises
    ------
    UncacheableError
        See the module's documentation.
    """
    digest = _Digest()
    digest.add(function)
    return digest.result()


class _Digest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._functions: dict[FunctionType, int] = {}

    def result(self) -> bytes:
        return self._hash.digest()

    def _put(self, tag: str, data: str | bytes = b"") -> None:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        self._hash.update(f"{tag}:{len(raw)}:".encode())
        self._hash.update(raw)

    def add(self, value: Any) -> None:
        if type(value) in _ATOMS:
            self._put(type(value).__name__, repr(value))
        elif type(value) is tuple:
            self._put("tuple", str(len(value)))
            for item in value:
                self.add(item)
        elif type(value) is frozenset:  # a constant such as that of `x in {1, 2}`
            self._put("frozenset", repr(sorted(map(repr, value))))
        elif isinstance(value, CodeType):
            self._add_code(value)
        elif isinstance(value, ModuleType):
            self._put("module", value.__name__)
        elif isinstance(value, FunctionType) and not is_library(value):
            self._add_function(value)
        elif isinstance(value, enum.Enum):
            self._put("enum", f"{type(value).__module__}.{type(value).__qualname__}.{value.name}")
            self.add(value.value)
        elif not self._add_numpy(value) and not self._add_dispatcher(value):
            self._add_name(value)

    def _add_code(self, code: CodeType) -> None:
        flags = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._put("code", code.co_code)
        self.add(flags)
        self.add((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self.add(code.co_consts)

    def _add_function(self, function: FunctionType) -> None:
        known = self._functions.get(function)
        if known is not None:
            self._put("again", str(known))
            return
        self._functions[function] = len(self._functions)
        self._put("function", function.__name__)
        self._add_code(function.__code__)
        self.add(function.__defaults__)
        self.add(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, value in references(function):
            self._put("reference", name)
            self.add(value)

    def _add_numpy(self, value: Any) -> bool:
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return False
        if isinstance(value, numpy.generic | numpy.dtype):
            self._put("numpy", repr(value))
            return True
        if type(value) is numpy.ndarray and not value.dtype.hasobject and value.nbytes <= _MAX_ARRAY_BYTES:
            self._put("array", f"{value.dtype.str} {value.shape} {value.flags.f_contiguous}")
            self._put("data", value.tobytes())
            return True
        return False

    def _add_dispatcher(self, value: Any) -> bool:
        function = getattr(value, "py_func", None)
        if not type(value).__module__.startswith("numba.") or not isinstance(function, FunctionType):
            return False
        options = sorted((str(name), repr(option)) for name, option in value.targetoptions.items())
        self._put("dispatcher", repr(options))
        self.add(function)
        return True

    def _add_name(self, value: Any) -> None:
        """Add a function or class of a library whose version is part of the key."""
        name = getattr(value, "__qualname__", getattr(value, "__name__", None))
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ufunc):
            if getattr(numpy, str(name), None) is value:
                self._put("ufunc", str(name))
                return
        elif isinstance(value, type | BuiltinFunctionType | FunctionType) or hasattr(value, "__wrapped__"):
            if is_library(value) and isinstance(name, str) and "<locals>" not in name:
                self._put("name", f"{value.__module__}.{name}")
                return
        raise UncacheableError(f"{value!r}")
