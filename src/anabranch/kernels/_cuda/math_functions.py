"""The functions of `math` in kernels on CUDA, with the types that they have on a CPU.

The compiler gives results the type of the first argument, also where it is an integer: ``-math.sqrt(2)`` is -1 then. It
keeps the result of `math.floor` a float, of 32 bits if its argument has as many. It takes the angle of two zeros, where
it knows them, for NaN.
"""

from __future__ import annotations

import math
from itertools import product
from types import BuiltinFunctionType
from typing import Any, Final

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._cuda.failure import is_active
from anabranch.kernels._cuda.variable import converted

_math: Final = lowering_math.math_dialect
_OF_ONE: Final = frozenset(
    (
        *(math.acos, math.acosh, math.asin, math.asinh, math.atan, math.atanh, math.cos, math.cosh, math.degrees),
        *(math.erf, math.erfc, math.exp, math.exp2, math.expm1, math.fabs, math.gamma, math.lgamma, math.log),
        *(math.log10, math.log1p, math.log2, math.radians, math.sin, math.sinh, math.sqrt, math.tan, math.tanh),
    )
)
_OF_TWO: Final = frozenset(
    (math.atan2, math.copysign, math.fmod, math.hypot, math.nextafter, math.pow, math.remainder),
)
_WHOLE: Final = {
    math.floor: (_math.floor, lowering_math.math_floor_cg),
    math.ceil: (_math.ceil, lowering_math.math_ceil_cg),
    math.trunc: (_math.trunc, lowering_math.math_trunc_cg),
}


def in_types_of_cpu(resolve: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Return the signature of a call with the type of the result on a CPU; `resolve` returns the compiler's."""
    key = getattr(function, "typing_key", function)
    if isinstance(key, BuiltinFunctionType) and key in _WHOLE:
        found = resolve(function, args, kwargs)
        is_unsigned = isinstance(args[0], types.Integer) and not args[0].signed
        return found and found.replace(return_type=types.uint64 if is_unsigned else types.int64)
    if not isinstance(key, BuiltinFunctionType) or key not in (_OF_ONE, _OF_TWO)[len(args) == 2]:
        return resolve(function, args, kwargs)
    # In float32 only where all arguments are.
    kinds = {_as_float(kind) for kind in args}
    kind = kinds.pop() if len(kinds) == 1 else types.float64
    return resolve(function, (kind,) * len(args), kwargs)


def _as_float(kind: Any) -> Any:
    return kind if isinstance(kind, types.Float) else types.float64


def arctan2(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Lower the angle of a point, without two zeros, for which the compiler has NaN: 1 and -1 stand for 0 and -0."""
    kind = builder.get_numba_type(target.name)
    y, x = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
    zero, one = (arith.constant(x.type, value=value) for value in (0.0, 1.0))
    are_zeros = arith.andi(*(arith.cmpf(arith.CmpFPredicate.OEQ, value, zero) for value in (y, x)))
    builder.store_var(target, _math.atan2(y, arith.select(are_zeros, _math.copysign(one, x), x)))


def _register_float(function: Any, count: int) -> None:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        floats = [types.float64] * count
        original = builder.get_registered_builder(function, types.float64(*floats))
        if not is_active():
            original(builder, target, args, kwargs)
            return
        operands = [converted(builder, target, types.float64, arg) for arg in args]
        original(builder, target, operands, kwargs)

    kinds = (types.Integer, types.Boolean, types.Float)
    for operands in product(kinds, repeat=count):
        if any(kind is not types.Float for kind in operands):
            lower_builtin(function, *operands)(lower)


def _register_whole(function: Any) -> None:
    rounded, original = _WHOLE[function]

    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not is_active():
            original(builder, target, args, kwargs)
            return
        kind = builder.get_numba_type(args[0].name)
        value = builder.load_var(args[0])
        if isinstance(kind, types.Float):
            value = rounded(value)
        builder.store_var(target, builder.lower_cast(kind, builder.get_numba_type(target.name), value))

    for kind in (types.Integer, types.Boolean, types.Float):
        lower_builtin(function, kind)(lower)


for _count, _functions in ((1, _OF_ONE), (2, _OF_TWO)):
    for _function in _functions:
        _register_float(_function, _count)
lower_builtin(math.atan2, types.Float, types.Float)(arctan2)
for _rounding in _WHOLE:
    _register_whole(_rounding)
