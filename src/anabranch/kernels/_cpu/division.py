"""Division in kernels on a CPU as NumPy defines it, where Numba differs.

* Complex division by zero is inf and nan; Numba raises.
* The least integer divided by -1 is itself; Numba gives 0. The remainder is 0 in both.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy
from numba.core import cgutils, types
from numba.core.base import OverloadSelector
from numba.cpython import numbers
from numba.np import ufunc_db

_REAL: Final = (operator.truediv, operator.itruediv)
_FLOOR: Final = (operator.floordiv, operator.ifloordiv)


class Definitions(dict[Any, Any]):
    """Meanings of functions in kernels: the rules here, then helpers that are added, then Numba's own."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self._base = base
        for operation in _REAL:
            self._replace(operation, {(kind, kind): _complex_quotient for kind in types.complex_domain})
        for operation in _FLOOR:
            self._replace(operation, {(types.Integer, types.Integer): _floor_quotient})
        self._replace(divmod, {(types.Integer, types.Integer): _quotient_and_rest})

    def _replace(self, operation: Any, rules: dict[Any, Any]) -> None:
        selector = self[operation] = OverloadSelector()
        for formal, rule in self._base[operation].versions:
            if formal not in rules:
                selector.append(rule, formal)
        for formal, rule in rules.items():
            selector.append(rule, formal)

    def __missing__(self, key: Any) -> Any:
        return self._base[key]


@contextmanager
def ufunc_division() -> Iterator[None]:
    """Give ``numpy.floor_divide`` and ``numpy.divmod`` of signed integers these meanings during the block.

    Numba has one table of them for all targets, so the caller must hold Numba's compiler lock.
    """
    changed = []
    for ufunc, rule, outputs in ((numpy.floor_divide, _floor_quotient, 1), (numpy.divmod, _quotient_and_rest, 2)):
        loops = ufunc_db.get_ufunc_info(ufunc)
        changed += [(loops, f"{kind}{kind}->{kind * outputs}", rule) for kind in "bhilq"]
    before = [(loops, name, loops[name]) for loops, name, _ in changed]
    for loops, name, rule in changed:
        loops[name] = rule
    try:
        yield
    finally:
        for loops, name, rule in before:
            loops[name] = rule


def _complex_quotient(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Divide by Smith's method, which first divides by the larger part of the divisor."""
    kind = sig.return_type
    a, b = (context.make_complex(builder, kind, value) for value in args)
    size_real, size_imag = (_absolute(builder, part) for part in (b.real, b.imag))
    real, imag = (cgutils.alloca_once(builder, a.real.type) for _ in range(2))
    with builder.if_else(builder.fcmp_ordered(">=", size_real, size_imag)) as (by_real, by_imag):
        with by_real:
            # Division by zero: the dividend determines the signs.
            zero = builder.fcmp_ordered("==", size_real, size_real.type(0))
            ratio = builder.fdiv(b.imag, b.real)
            scale = builder.fadd(b.real, builder.fmul(b.imag, ratio))
            for place, part, rest in (
                (real, a.real, builder.fadd(a.real, builder.fmul(a.imag, ratio))),
                (imag, a.imag, builder.fsub(a.imag, builder.fmul(a.real, ratio))),
            ):
                quotient = builder.select(zero, builder.fdiv(part, size_real), builder.fdiv(rest, scale))
                builder.store(quotient, place)
        with by_imag:
            # Also taken if a part is nan: the result is then nan.
            ratio = builder.fdiv(b.real, b.imag)
            scale = builder.fadd(builder.fmul(b.real, ratio), b.imag)
            for place, rest in (
                (real, builder.fadd(builder.fmul(a.real, ratio), a.imag)),
                (imag, builder.fsub(builder.fmul(a.imag, ratio), a.real)),
            ):
                builder.store(builder.fdiv(rest, scale), place)
    result = context.make_complex(builder, kind)
    result.real, result.imag = builder.load(real), builder.load(imag)
    return result._getvalue()


def _absolute(builder: Any, value: Any) -> Any:
    return builder.call(builder.module.declare_intrinsic("llvm.fabs", [value.type]), [value])


def _divide(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, Any]:
    kind = sig.return_type.dtype if isinstance(sig.return_type, types.UniTuple) else sig.return_type
    parts = numbers._int_divmod_impl(context, builder, sig, args, "division by zero")
    quotient, rest = (builder.load(part) for part in parts)
    if not kind.signed:
        return quotient, rest
    left, right = (context.cast(builder, value, source, kind) for value, source in zip(args, sig.args, strict=True))
    least = left.type(kind.minval)
    wraps = builder.and_(builder.icmp_signed("==", left, least), builder.icmp_signed("==", right, right.type(-1)))
    return builder.select(wraps, least, quotient), rest


def _floor_quotient(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _divide(context, builder, sig, args)[0]


def _quotient_and_rest(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return cgutils.pack_array(builder, _divide(context, builder, sig, args))
