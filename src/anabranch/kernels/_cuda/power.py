"""Powers in kernels on CUDA. The compiler's own of integers call a function that the driver has not.

Those of integers wrap around, as products do. A negative exponent gives the whole part of the quotient, and 0 where it
is infinite. Of an integer and a float, or of a number and a complex one, the compiler has none: both are converted.
Those of complex numbers with a small whole exponent are products, as NumPy's, so that the square of a real one is real.
The rule replaces the compiler's only while it compiles a kernel of Anabranch.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.division import follows_numpy

_complex: Final = lowering_math.complex_dialect
# Complex numbers with a larger exponent are multiplied by way of logarithms.
_MOST_PRODUCTS: Final = 128


def _number(value: Any, number: int) -> Any:
    return arith.constant(value.type, value=number if number < 1 << 63 else number - (1 << 64))


def is_at_most_one(kind: Any, value: Any) -> Any:
    """Return whether an integer is 0, 1 or -1."""
    if not getattr(kind, "signed", False):
        return arith.cmpi(arith.CmpIPredicate.ule, value, _number(value, 1))
    return arith.cmpi(arith.CmpIPredicate.ule, arith.addi(value, _number(value, 1)), _number(value, 2))


def integer_power(kind: Any, base: Any, exponent: Any) -> Any:
    """Return the power of two integers of one type, by repeated squares."""
    zero, one = _number(base, 0), _number(base, 1)
    power, square = one, base
    for bit in range(kind.bitwidth - kind.signed):
        chosen = arith.andi(exponent, _number(exponent, 1 << bit))
        is_set = arith.cmpi(arith.CmpIPredicate.ne, chosen, zero)
        power = arith.select(is_set, arith.muli(power, square), power)
        square = arith.muli(square, square)
    if not kind.signed:
        return power
    is_odd = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(exponent, one), zero)
    of_unit = arith.select(is_odd, base, arith.muli(base, base))
    inverse = arith.select(is_at_most_one(kind, base), of_unit, zero)
    return arith.select(arith.cmpi(arith.CmpIPredicate.slt, exponent, zero), inverse, power)


def _complex_power(base: Any, exponent: Any) -> tuple[Any, Any]:
    """Return the power of a complex number and an int64 by repeated squares, and whether that is small enough."""
    zero = _number(exponent, 0)
    is_negative = arith.cmpi(arith.CmpIPredicate.slt, exponent, zero)
    size = arith.select(is_negative, arith.subi(zero, exponent), exponent)
    parts = [arith.constant(_complex.re(base).type, value=value) for value in (1.0, 0.0)]
    one = _complex.create_(base.type, *parts)
    power, square = one, base
    for bit in range(_MOST_PRODUCTS.bit_length() - 1):
        is_set = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(size, _number(size, 1 << bit)), zero)
        power = arith.select(is_set, _complex.mul(power, square), power)
        square = _complex.mul(square, square)
    power = arith.select(is_negative, _complex.div(one, power), power)
    return power, arith.cmpi(arith.CmpIPredicate.ult, size, _number(size, _MOST_PRODUCTS))


def _power(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    kind = builder.get_numba_type(target.name)
    base = builder.get_numba_type(args[0].name)
    if not follows_numpy() or (isinstance(kind, types.Float) and isinstance(base, types.Float)):
        lowering_math.pow_cg(builder, target, args, kwargs)
        return
    values = [builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args]
    if isinstance(kind, types.Complex):
        power = _complex.pow(*values)
        exponent = builder.get_numba_type(args[1].name)
        if isinstance(exponent, types.Integer | types.Boolean):
            whole = builder.lower_cast(exponent, types.int64, builder.load_var(args[1]))
            by_products, is_small = _complex_power(values[0], whole)
            power = arith.select(is_small, by_products, power)
    else:
        is_float = isinstance(kind, types.Float)
        power = lowering_math.math_dialect.powf(*values) if is_float else integer_power(kind, *values)
    builder.store_var(target, power)


for _function in (operator.pow, operator.ipow, pow):
    for _base in (types.Integer, types.Boolean, types.Float):
        for _exponent in (types.Integer, types.Boolean, types.Float, types.Complex):
            lower_builtin(_function, _base, _exponent)(_power)
    for _exponent in (types.Integer, types.Boolean, types.Float, types.Complex):
        lower_builtin(_function, types.Complex, _exponent)(_power)
