"""A digest of everything that decides what a function does, for the disk cache.

The digest covers bytecode, constants, defaults, and the values of globals and closure variables, for the function and
for every Python function that it calls. A value that cannot be identified exactly makes the kernel uncacheable rather
than wrong: an instance of some class, a foreign function, a module that the code uses other than by attribute.
"""

from __future__ import annotations

import enum
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from anabranch.kernels._digest import Digest, UncacheableError
from anabranch.kernels._overload import Overloads
from anabranch.kernels._reference import UNDEFINED, codes_of, is_library, library_name, loads

_ENUM_BASES: Final = ((enum.Enum,), (enum.IntEnum,))


def fingerprint(function: FunctionType, overloads: Overloads) -> bytes:
    """Return a digest that changes whenever the result of `function` could change.

    With equal digests, each line also has the same distance from the first line, in the function and its helpers.

    Parameters
    ----------
    function : function
        The kernel's function.
    overloads : Overloads
        Functions that are overloaded in this process.

    Raises
    ------
    UncacheableError
        See the module's docstring.
    """
    if overloads.everything:
        raise UncacheableError("the compiler has been taught another meaning of a library's function")
    digest = _FunctionDigest(overloads)
    try:
        digest.add(function)
    except RecursionError:
        raise UncacheableError("functions or tuples nested too deeply") from None
    return digest.result()


class _FunctionDigest(Digest):
    def __init__(self, overloads: Overloads) -> None:
        super().__init__()
        self._overloads = overloads
        self._seen: dict[int, tuple[int, Any]] = {}  # functions and classes by id; held so that ids stay unique

    def add(self, value: Any) -> None:
        if id(value) in self._overloads.values:
            raise UncacheableError(f"the compiler has been taught another meaning of {value!r}")
        super().add(value)

    def add_other(self, value: Any) -> None:
        if isinstance(value, ModuleType):
            raise UncacheableError(f"module {value.__name__} is used as a value")
        if isinstance(value, FunctionType) and not is_library(value):
            self._add_function(value)
        elif isinstance(value, enum.EnumMeta):
            self._add_enum(value)
        elif isinstance(value, enum.Enum):
            self.put("member")
            self.add(value.name)
            self._add_enum(type(value))
        elif not self._add_dispatcher(value):
            self._add_name(value)

    def _is_again(self, value: Any) -> bool:
        """Add the number of an earlier occurrence of `value`, if there is one."""
        if id(value) in self._seen:
            self.put("again")
            self.add(self._seen[id(value)][0])
            return True
        self._seen[id(value)] = len(self._seen), value
        return False

    def _add_code(self, code: CodeType, outer_line: int) -> None:
        self.put("code", code.co_code)
        self.put("lines", code.co_linetable)
        self.put("exceptions", code.co_exceptiontable)
        self.add((code.co_name, code.co_firstlineno - outer_line, code.co_flags))
        self.add((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
        self.add((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self.add(len(code.co_consts))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant, code.co_firstlineno)
            else:
                self.add(constant)

    def _add_function(self, function: FunctionType) -> None:
        if self._is_again(function):
            return
        if "_numba_type_" in vars(function):
            raise UncacheableError(f"{function!r} tells Numba its type itself")
        self.put("function")
        self.add(function.__name__)
        self._check_attributes(function)
        self._add_code(function.__code__, function.__code__.co_firstlineno)
        self.add(function.__defaults__)
        self.add(tuple(sorted((function.__kwdefaults__ or {}).items())))
        read = loads(function)
        self.add(len(read))
        for load in read:
            if not load.is_exact:
                raise UncacheableError(f"{load.name} is not in the dictionary of its module")
            self.add((load.name, load.is_closure))
            if load.value is UNDEFINED:
                self.put("undefined")
            else:
                self.add(load.value)

    def _check_attributes(self, function: FunctionType) -> None:
        if not self._overloads.attributes:
            return
        for code in codes_of(function.__code__):
            # A string may name an attribute: getattr(x, "name").
            names = {*code.co_names, *(constant for constant in code.co_consts if isinstance(constant, str))}
            for name in sorted(names & self._overloads.attributes):
                raise UncacheableError(f"the compiler has been taught what .{name} is")

    def _add_enum(self, kind: Any) -> None:
        if self._is_again(kind):
            return
        if kind.__bases__ not in _ENUM_BASES:
            raise UncacheableError(f"{kind!r} is not derived from Enum or IntEnum alone")
        self.put("enum")
        self.add(kind.__base__.__name__)
        self.add(tuple((name, member.value) for name, member in kind.__members__.items()))

    def _add_dispatcher(self, value: Any) -> bool:
        registry = sys.modules.get("numba.core.registry")
        compiler = sys.modules.get("numba.core.compiler")
        if registry is None or compiler is None or type(value) is not registry.CPUDispatcher:
            return False
        if not value._can_compile or value.locals or value._compiler.pipeline_class is not compiler.Compiler:
            raise UncacheableError(f"{value!r} is compiled in a way of its own")
        self.put("dispatcher")
        self.add(len(value.targetoptions))
        for name, option in sorted(value.targetoptions.items()):
            plain = Digest()  # raises for other than plain data, such as a function that decides on inlining
            plain.add((name, frozenset(option) if type(option) is set else option))
            self.put("option", plain.result())
        self.add(value.py_func)
        return True

    def _add_name(self, value: Any) -> None:
        """Add the name of a function or class of a library, whose version is part of the key."""
        name = library_name(value)
        if name is None:
            raise UncacheableError(f"{value!r}")
        self.put("name", name.encode())
