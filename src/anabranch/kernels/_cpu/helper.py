"""Compiles the Python functions that a kernel calls as part of the kernel.

Numba's dispatchers would cache each function's first compilation: with the globals of that time, the error model of the
first caller, and without the kernel's checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from numba.core import errors, types, utils
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typing.templates import fold_arguments
from numba.extending import models, register_model

from anabranch.kernels._in_python import lacking, of_more, of_range
from anabranch.kernels._reference import python_function

_numbers: Final = itertools.count()

Compile = Callable[[FunctionType, tuple[Any, ...], dict[str, Any]], Any]


class Helper(types.Callable, types.Opaque):  # type: ignore[misc]  # Numba has no types
    """Numba type of a function that is compiled as part of a kernel."""

    def __init__(self, function: FunctionType, options: dict[str, Any], compile_part: Compile, target: Any) -> None:
        self._function = function
        self._options = options
        self._compile = compile_part
        self._target = target
        self._signature = utils.pysignature(function)
        self._results: dict[tuple[Any, ...], Any] = {}
        self._compiling = False
        # Numba identifies types by name, even across compilations.
        super().__init__(f"anabranch.helper({function.__qualname__}, {next(_numbers)})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        plain = tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        try:
            return self._call_type(*plain)
        except errors.NumbaError:
            if plain == (tuple(args), dict(kws)):
                raise
        return self._call_type(tuple(args), dict(kws))

    def _call_type(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        folded = fold_arguments(
            self._signature,
            args,
            kws,
            lambda _, __, value: value,
            lambda _, __, default: types.Omitted(default),
            lambda _, __, values: types.StarArgTuple(values),
        )
        if folded not in self._results:
            if self._compiling:
                raise errors.TypingError("compiler re-entrant: a function that calls itself")
            self._compiling = True
            try:
                of_a_range = bool(folded) and isinstance(folded[0], types.RangeType)
                function = of_range(self._function) if of_a_range else self._function
                result = self._compile(function, folded, self._options)
            finally:
                self._compiling = False
            self._target.insert_user_function(self._key(folded), result.fndesc, [result.library])
            self._results[folded] = result.signature.replace(pysig=self._signature)
        return self._results[folded]

    def _key(self, args: tuple[Any, ...]) -> object:
        return self, args

    def get_impl_key(self, sig: Any) -> object:
        return self._key(tuple(sig.args))

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return list(self._results.values()), True


register_model(Helper)(models.OpaqueModel)


class Helpers:
    """The helper types of one compilation."""

    def __init__(self, compile_part: Compile, target: Any) -> None:
        self._compile = compile_part
        self._target = target
        self._found: dict[int, Helper | None] = {}
        self._of_more: dict[FunctionType, Helper] = {}
        self._kept: list[Any] = []

    def type_of(self, value: Any) -> Helper | None:
        """Return the type of a function; None if Numba implements it itself, or if it is of another kind.

        A function overloaded by `numba.extending.overload` keeps that meaning. A function that Numba's decorators have
        compiled counts as the plain function behind it, with its ``fastmath``.
        """
        function = lacking("cpu", value) or python_function(value)
        if function is None:
            return None
        if id(value) not in self._found:
            self._kept.append(value)
            self._found[id(value)] = self._make(value, function)
        return self._found[id(value)]

    def of_more(self, called: Any, count: int) -> Helper | None:
        """Return the type for a call of one of Numba's functions with more arguments than it takes there, or None."""
        function = of_more(getattr(called, "typing_key", None), count)
        if function is None:
            return None
        if function not in self._of_more:
            self._of_more[function] = Helper(function, {}, self._compile, self._target)
        return self._of_more[function]

    def _make(self, value: Any, function: FunctionType) -> Helper | None:
        options: dict[str, Any] = {}
        if value is not function and lacking("cpu", value) is None:
            if type(value) is not CPUDispatcher or not value._can_compile:
                return None
            options = {name: value.targetoptions[name] for name in ("fastmath",) if name in value.targetoptions}
        elif _is_known(function):
            return None
        return Helper(function, options, self._compile, self._target)


def _is_known(function: FunctionType) -> bool:
    try:
        return cpu_target.typing_context.resolve_value_type(function) is not None
    except Exception:  # Numba's or NumPy's error: the function has no type
        return False
