"""Powers in kernels on CUDA. The compiler's own of integers call a function that the driver has not.

Those of integers wrap around, as products do. A negative exponent gives the whole part of the quotient, and 0 where it
is infinite. Of an integer and a float, or of a number and a complex one, the compiler has none: both are converted.
The rule replaces the compiler's only while it compiles a kernel of Anabranch.
"""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.division import follows_numpy


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


def _power(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    kind = builder.get_numba_type(target.name)
    base = builder.get_numba_type(args[0].name)
    same_class = next((each for each in (types.Float, types.Complex) if isinstance(kind, each)), None)
    if not follows_numpy() or (same_class is not None and isinstance(base, same_class)):
        lowering_math.pow_cg(builder, target, args, kwargs)
        return
    values = [builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args]
    if isinstance(kind, types.Complex):
        power = lowering_math.complex_dialect.pow(*values)
    else:
        is_float = isinstance(kind, types.Float)
        power = lowering_math.math_dialect.powf(*values) if is_float else integer_power(kind, *values)
    builder.store_var(target, power)


for _function in (operator.pow, operator.ipow, pow):
    for _base in (types.Integer, types.Boolean, types.Float):
        for _exponent in (types.Integer, types.Boolean, types.Float, types.Complex):
            lower_builtin(_function, _base, _exponent)(_power)
