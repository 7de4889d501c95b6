"""Quotients, remainders, powers, shifts and tangents in kernels on a CPU as NumPy defines them, where Numba differs.

* Complex division by zero is inf and nan; Numba raises.
* The least integer divided by -1 is itself; Numba gives 0. The remainder is 0 in both; by NumPy's functions, Numba ends
  the process.
* Zero to a negative power is inf; with an integer as exponent, Numba raises.
* A power of integers wraps around; Numba gives a rounded one. A negative exponent gives the whole part of the quotient,
  and 0 where it is infinite.
* A power of a complex number with a whole exponent is a product, so that the square of a real one is real.
* A shift by as many bits as there are, or more, leaves 0, or -1 of a negative number to the right; Numba leaves that to
  the processor.
* `numpy.tanh` of complex numbers with a large real part is one; Numba gives NaN.
* `numpy.floor_divide` of infinite numbers does as Python's operator. `numpy.sign` of an unsigned one is never -1.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy
from numba.core import cgutils, types
from numba.core.base import OverloadSelector
from numba.cpython import numbers
from numba.np import ufunc_db

from anabranch.kernels._cpu.in_place import CHANGES, checked

_REAL: Final = (operator.truediv, operator.itruediv)
_FLOOR: Final = (operator.floordiv, operator.ifloordiv)
_LEFT: Final = (operator.lshift, operator.ilshift)
_RIGHT: Final = (operator.rshift, operator.irshift)
_POWER: Final = (operator.pow, operator.ipow, pow)
_ARRAYS: Final = (types.Array, types.Array)
# From there on the real part of the hyperbolic tangent is 1 in float64.
_TANH_IS_ONE: Final = 22.0
# Of larger exponents, powers are those of numbers that are no integers.
_MOST_PRODUCTS: Final = 0x10000


class Definitions(dict[Any, Any]):
    """Meanings of functions in kernels: the rules here, then helpers that are added, then Numba's own."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self._base = base
        for operation in _REAL:
            self._replace(operation, {(kind, kind): _complex_quotient for kind in types.complex_domain})
        for operation in _FLOOR:
            self._replace(operation, {(types.Integer, types.Integer): _floor_quotient})
        powers: dict[Any, Any] = {(types.Float, kind): _real_power for kind in types.integer_domain}
        powers[types.Integer, types.Integer] = _integer_power
        powers |= {(types.Complex, types.Integer): _complex_power}
        for operation in _POWER:
            self._replace(operation, powers)
        for operation in _POWER[:2]:
            self._replace(operation, powers | {(types.Float, types.IntegerLiteral): _constant_power})
        self._replace(divmod, {(types.Integer, types.Integer): _quotient_and_rest})
        for operations, shift in ((_LEFT, _shifted_left), (_RIGHT, _shifted_right)):
            for operation in operations:
                self._replace(operation, {(types.Integer, types.Integer): shift})
        for operation in CHANGES:
            rules = {formal: rule for formal, rule in self[operation].versions if formal == _ARRAYS}
            self._replace(operation, {formal: checked(rule) for formal, rule in rules.items()})

    def _replace(self, operation: Any, rules: dict[Any, Any]) -> None:
        before = self[operation]
        selector = self[operation] = OverloadSelector()
        for formal, rule in before.versions:
            if formal not in rules:
                selector.append(rule, formal)
        for formal, rule in rules.items():
            selector.append(rule, formal)

    def __missing__(self, key: Any) -> Any:
        return self._base[key]


@contextmanager
def ufunc_division() -> Iterator[None]:
    """Give NumPy's functions of quotients, remainders and signs these meanings during the block.

    Numba has one table of them for all targets, so the caller must hold Numba's compiler lock.
    """
    changed = []
    for ufunc, rule, loop, kinds in _UFUNCS:
        loops = ufunc_db.get_ufunc_info(ufunc)
        changed += [(loops, loop.replace("x", kind), rule) for kind in kinds]
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


def _rest(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _divide(context, builder, sig, args)[1]


def _rest_of_c(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return the remainder with the sign of the dividend."""
    left, right = args
    rest = _rest(context, builder, sig, args)
    zero = left.type(0)
    other_sign = builder.icmp_signed("<", builder.xor(left, rest), zero)
    wrong = builder.and_(other_sign, builder.icmp_signed("!=", rest, zero))
    return builder.select(wrong, builder.sub(rest, right), rest)


def _sign_of_unsigned(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (value,) = args
    return builder.zext(builder.icmp_unsigned("!=", value, value.type(0)), value.type)


def _shifted_left(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value, count = (context.cast(builder, *pair, sig.return_type) for pair in zip(args, sig.args, strict=True))
    fits = builder.icmp_unsigned("<", count, count.type(sig.return_type.bitwidth))
    # The processor must not see the other counts, for which LLVM has no result.
    return builder.select(fits, builder.shl(value, builder.select(fits, count, count.type(0))), value.type(0))


def _shifted_right(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value, count = (context.cast(builder, *pair, sig.return_type) for pair in zip(args, sig.args, strict=True))
    last = count.type(sig.return_type.bitwidth - 1)
    fits = builder.icmp_unsigned("<=", count, last)
    bits = builder.select(fits, count, last)
    if sig.return_type.signed:
        return builder.ashr(value, bits)
    return builder.select(fits, builder.lshr(value, bits), value.type(0))


def _inverse(context: Any, builder: Any, sig: Any, value: Any) -> Any:
    return builder.fdiv(context.get_constant(sig.return_type, 1.0), value)


def _constant_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    exponent = sig.args[1].literal_value
    if exponent >= 0 or -exponent > _MOST_PRODUCTS:
        return numbers.static_power_impl(context, builder, sig, args)
    positive = sig.replace(args=(sig.args[0], types.literal(-exponent)))
    return _inverse(context, builder, sig, numbers.static_power_impl(context, builder, positive, args))


def _real_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.return_type

    def power(base: Any, exponent: Any) -> Any:
        square, result = kind(base), kind(1)
        left = -exponent if exponent < 0 else exponent
        if left > _MOST_PRODUCTS or left < 0:
            return math.pow(square, float(exponent))
        while left != 0:
            if left & 1:
                result *= square
            left >>= 1
            square *= square
        return result

    # Outside that function, whose division would raise.
    result = context.compile_internal(builder, power, sig, args)
    if not sig.args[1].signed:
        return result
    exponent = args[1]
    least, zero = exponent.type(max(-_MOST_PRODUCTS, sig.args[1].minval)), exponent.type(0)
    by_products = builder.icmp_signed(">=", exponent, least)
    inverted = builder.and_(builder.icmp_signed("<", exponent, zero), by_products)
    return builder.select(inverted, _inverse(context, builder, sig, result), result)


def is_whole_power(function: Any, args: Any) -> bool:
    """Return whether a call is the power of a complex number and an integer, which Numba takes for a complex one."""
    return (
        function in _POWER
        and len(args) == 2
        and isinstance(args[0], types.Complex)
        and isinstance(args[1], types.Integer | types.Boolean)
    )


def _complex_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.return_type

    def power(base: Any, exponent: Any) -> Any:
        square, result = kind(base), kind(1)
        left = exponent if exponent >= 0 else -(exponent + 1)  # of the least integer, there is no opposite
        while left != 0:
            if left & 1:
                result *= square
            left >>= 1
            square *= square
        if exponent < 0:
            result *= kind(base)
        return kind(1) / result if exponent < 0 else result

    return context.compile_internal(builder, power, sig, args)


def _integer_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.return_type
    zero, one = kind(0), kind(1)

    def power(base: Any, exponent: Any) -> Any:
        square, result, left = kind(base), one, exponent
        if left < 0:
            if square != one and kind(square + one) != zero:
                return zero
            return square if left & 1 else one
        while left != 0:
            if left & 1:
                result = kind(result * square)
            square = kind(square * square)
            left >>= 1
        return result

    return context.compile_internal(builder, power, sig, args)


def _complex_tanh(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.return_type

    def tanh(value: Any) -> Any:
        x, y = value.real, value.imag
        if abs(x) > _TANH_IS_ONE:  # whose hyperbolic sine may have no square
            turned = math.sin(y) * math.cos(y) if math.isfinite(y) else y - y
            if math.isinf(x):
                turned = math.copysign(0.0, turned)
            return kind(complex(math.copysign(1.0, x), 4 * turned * math.exp(-2 * abs(x))))
        tangent, sine = math.tan(y), math.sinh(x)
        growth = 1 + tangent * tangent
        divisor = 1 + growth * sine * sine
        return kind(complex(growth * math.sqrt(1 + sine * sine) * sine / divisor, tangent / divisor))

    return context.compile_internal(builder, tanh, sig, args)


# The rule, the loops that it replaces, with an x for each kind, and the kinds.
_UFUNCS: Final = (
    (numpy.floor_divide, _floor_quotient, "xx->x", "bhilq"),
    (numpy.floor_divide, numbers.real_floordiv_impl, "xx->x", "fd"),
    (numpy.divmod, _quotient_and_rest, "xx->xx", "bhilq"),
    (numpy.power, _integer_power, "xx->x", "bhilqBHILQ"),
    (numpy.remainder, _rest, "xx->x", "bhilq"),
    (numpy.fmod, _rest_of_c, "xx->x", "bhilq"),
    (numpy.left_shift, _shifted_left, "xx->x", "bhilqBHILQ"),
    (numpy.right_shift, _shifted_right, "xx->x", "bhilqBHILQ"),
    (numpy.tanh, _complex_tanh, "x->x", "FD"),
    (numpy.sign, _sign_of_unsigned, "x->x", "BHILQ"),
)
