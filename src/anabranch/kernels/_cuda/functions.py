"""NumPy's functions of numbers, in kernels on CUDA: for most of them numba-cuda-mlir has types and no code.

A call such as ``np.maximum(x[i], 0)`` means the same as on the CPU device. The types of operands and results are those
of NumPy's loops, which the compiler's type inference has chosen before; integers are divided as in `division`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import product
from typing import Any, Final

import numpy as np
from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.comparison import equal, not_equal
from anabranch.kernels._cuda.division import complex_quotient, floor_divide, remainder
from anabranch.kernels._cuda.math_functions import arctan2
from anabranch.kernels._cuda.power import integer_power, is_at_most_one
from anabranch.kernels._cuda.refusal import RefusedError
from anabranch.kernels._cuda.shift import shifted_left, shifted_right

_math: Final = lowering_math.math_dialect
_complex: Final = lowering_math.complex_dialect

# Takes the type of the operands, and their values in it; returns the value of the result.
Operation = Callable[..., Any]


def _value(builder: Any, operand: Any, kind: Any) -> Any:
    return builder.lower_cast(builder.get_numba_type(operand.name), kind, builder.load_var(operand))


def _in_type_of_result(operation: Operation) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        kind = builder.get_numba_type(target.name)
        builder.store_var(target, operation(kind, *(_value(builder, arg, kind) for arg in args)))

    return lower


def _in_types_of_operands(operation: Operation) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        kinds = [builder.get_numba_type(arg.name) for arg in args]
        kinds = [kind.literal_type if isinstance(kind, types.Literal) else kind for kind in kinds]
        operands = [(kind, _value(builder, arg, kind)) for kind, arg in zip(kinds, args, strict=True)]
        builder.store_var(target, operation(*operands))

    return lower


def _refuse_complex(*kinds: Any) -> None:
    if any(isinstance(kind, types.Complex) for kind in kinds):
        raise RefusedError("numba-cuda-mlir has no such function of complex numbers on the GPU")


def _real(of_floats: Operation, of_complex: Operation | None = None) -> Operation:
    def operation(kind: Any, value: Any) -> Any:
        if of_complex is not None and isinstance(kind, types.Complex):
            return of_complex(value)
        _refuse_complex(kind)
        return of_floats(value)

    return operation


def _number(value: Any, number: int) -> Any:
    """Return a constant of a value's type."""
    return arith.constant(value.type, value=number if lowering_math._is_integer_type(value.type) else float(number))


def _by_kind(of_floats: Operation, of_signed: Operation, of_unsigned: Operation) -> Operation:
    def operation(kind: Any, *values: Any) -> Any:
        _refuse_complex(kind)
        if isinstance(kind, types.Float):
            return of_floats(*values)
        return (of_signed if getattr(kind, "signed", False) else of_unsigned)(*values)

    return operation


def _scaled(factor: float) -> Operation:
    return _real(lambda value: arith.mulf(value, arith.constant(value.type, value=factor)))


def _whole(of_floats: Operation) -> Operation:
    return lambda kind, value: of_floats(value) if isinstance(kind, types.Float) else value


def _negative(kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Complex):
        return _complex.neg(value)
    return arith.negf(value) if isinstance(kind, types.Float) else arith.subi(_number(value, 0), value)


def _square(kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Complex):
        return _complex.mul(value, value)
    return arith.mulf(value, value) if isinstance(kind, types.Float) else arith.muli(value, value)


def _conjugate(kind: Any, value: Any) -> Any:
    if not isinstance(kind, types.Complex):
        return value
    parts = {"real": _complex.re(value), "imaginary": arith.negf(_complex.im(value))}
    return _complex.create_(complex=value.type, **parts)


def _power(kind: Any, base: Any, exponent: Any) -> Any:
    if isinstance(kind, types.Complex):
        return _complex.pow(base, exponent)
    return _math.powf(base, exponent) if isinstance(kind, types.Float) else integer_power(kind, base, exponent)


def _reciprocal(kind: Any, value: Any) -> Any:
    _refuse_complex(kind)
    if isinstance(kind, types.Float):
        return arith.divf(_number(value, 1), value)
    return arith.select(is_at_most_one(kind, value), value, _number(value, 0))


def _sign(kind: Any, value: Any) -> Any:
    _refuse_complex(kind)
    zero, one = _number(value, 0), _number(value, 1)
    if not isinstance(kind, types.Float):
        if not getattr(kind, "signed", False):
            return arith.select(arith.cmpi(arith.CmpIPredicate.ne, value, zero), one, zero)
        negative = arith.select(arith.cmpi(arith.CmpIPredicate.slt, value, zero), _number(value, -1), zero)
        return arith.select(arith.cmpi(arith.CmpIPredicate.sgt, value, zero), one, negative)
    # nan is neither, and stays.
    negative = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, value, zero), _number(value, -1), value)
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, value, zero), one, negative)


def _fmod(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    is_float = isinstance(builder.get_numba_type(target.name), types.Float)
    lower = lowering_math.math_fmod_cg if is_float else _in_type_of_result(_rest_of_c)
    lower(builder, target, args, kwargs)


def _rest_of_c(kind: Any, left: Any, right: Any) -> Any:
    """Return the remainder of integers with the sign of the dividend; by zero, 0."""
    zero, one = _number(right, 0), _number(right, 1)
    undefined = arith.cmpi(arith.CmpIPredicate.eq, right, zero)
    if kind.signed:
        undefined = arith.ori(undefined, arith.cmpi(arith.CmpIPredicate.eq, right, _number(right, -1)))
    divisor = arith.select(undefined, one, right)  # which leaves 0
    return arith.remsi(left, divisor) if kind.signed else arith.remui(left, divisor)


def _log_of_sum(log1p: Operation, exp: Operation, of_two: float) -> Operation:
    def operation(_: Any, left: Any, right: Any) -> Any:
        larger = arith.maximumf(left, right)
        distance = arith.negf(_math.absf(arith.subf(left, right)))
        sum_of_both = arith.addf(larger, log1p(exp(distance)))
        # Two equal infinities have no distance.
        doubled = arith.addf(left, arith.constant(left.type, value=of_two))
        return arith.select(arith.cmpf(arith.CmpFPredicate.OEQ, left, right), doubled, sum_of_both)

    return operation


def _log2_1p(value: Any) -> Any:
    return arith.mulf(_math.log1p(value), arith.constant(value.type, value=1 / np.log(2)))


def _parts(kind: Any, value: Any) -> list[tuple[Any, Any]]:
    return [(kind.underlying_float, part(value)) for part in (_complex.re, _complex.im)]


def _truth(kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Complex):
        return arith.ori(*(_truth(*part) for part in _parts(kind, value)))
    if isinstance(kind, types.Float):
        return arith.cmpf(arith.CmpFPredicate.UNE, value, _number(value, 0))
    return arith.cmpi(arith.CmpIPredicate.ne, value, _number(value, 0))


def _logical(combine: Operation) -> Operation:
    return lambda left, right: combine(_truth(*left), _truth(*right))


def _negated(answer: Any) -> Any:
    return arith.xori(answer, arith.constant(answer.type, value=1))


def _sign_bit(operand: tuple[Any, Any]) -> Any:
    kind, value = operand
    zero = _number(value, 0)
    if isinstance(kind, types.Float):
        return arith.cmpf(arith.CmpFPredicate.OLT, _math.copysign(_number(value, 1), value), zero)
    predicate = arith.CmpIPredicate.slt if getattr(kind, "signed", False) else arith.CmpIPredicate.ult
    return arith.cmpi(predicate, value, zero)


def _asks(combine: Operation, of_float: Operation, of_integer: bool) -> Operation:
    """Return a question: what is asked of a float, and the answers of both parts of a complex number combined."""

    def operation(operand: tuple[Any, Any]) -> Any:
        kind, value = operand
        if isinstance(kind, types.Complex):
            return combine(*map(operation, _parts(kind, value)))
        if isinstance(kind, types.Float):
            return of_float(value)
        predicate = arith.CmpIPredicate.eq if of_integer else arith.CmpIPredicate.ne
        return arith.cmpi(predicate, value, value)

    return operation


def _is_finite(value: Any) -> Any:
    # The difference of an infinity, or of nan, with itself is nan.
    return arith.cmpf(arith.CmpFPredicate.ORD, arith.subf(value, value), _number(value, 0))


def _is_infinite(value: Any) -> Any:
    return arith.cmpf(arith.CmpFPredicate.OEQ, _math.absf(value), arith.constant(value.type, value=float("inf")))


def _is_nan(value: Any) -> Any:
    return arith.cmpf(arith.CmpFPredicate.UNO, value, value)


def _absolute(operand: tuple[Any, Any]) -> Any:
    kind, value = operand
    if isinstance(kind, types.Complex):
        is_infinite = arith.ori(*(_is_infinite(part(value)) for part in (_complex.re, _complex.im)))
        size = _complex.abs(value)  # NaN where the other part is
        return arith.select(is_infinite, arith.constant(size.type, value=math.inf), size)
    if isinstance(kind, types.Float):
        return _math.absf(value)
    return arith.maxsi(value, _negative(kind, value)) if getattr(kind, "signed", False) else value


def _divide(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    is_complex = isinstance(builder.get_numba_type(target.name), types.Complex)
    (complex_quotient if is_complex else lowering_math.truediv_cg)(builder, target, args, kwargs)


def _ordered(compare: Callable[..., None]) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        _refuse_complex(*(builder.get_numba_type(arg.name) for arg in args))
        compare(builder, target, args, kwargs)

    return lower


_UNARY: Final[dict[np.ufunc, Operation]] = {
    np.sqrt: _real(_math.sqrt, _complex.sqrt),
    np.cbrt: _real(_math.cbrt),
    np.exp: _real(_math.exp, _complex.exp),
    np.exp2: _real(_math.exp2),
    np.expm1: _real(_math.expm1, _complex.expm1),
    np.log: _real(_math.log, _complex.log),
    np.log2: _real(_math.log2),
    np.log10: _real(_math.log10),
    np.log1p: _real(_math.log1p, _complex.log1p),
    np.sin: _real(_math.sin, _complex.sin),
    np.cos: _real(_math.cos, _complex.cos),
    np.tan: _real(_math.tan, _complex.tan),
    np.arcsin: _real(_math.asin),
    np.arccos: _real(_math.acos),
    np.arctan: _real(_math.atan),
    np.sinh: _real(_math.sinh),
    np.cosh: _real(_math.cosh),
    np.tanh: _real(_math.tanh, _complex.tanh),
    np.arcsinh: _real(_math.asinh),
    np.arccosh: _real(_math.acosh),
    np.arctanh: _real(_math.atanh),
    np.deg2rad: _scaled(np.pi / 180),
    np.radians: _scaled(np.pi / 180),
    np.rad2deg: _scaled(180 / np.pi),
    np.degrees: _scaled(180 / np.pi),
    np.floor: _whole(_math.floor),
    np.ceil: _whole(_math.ceil),
    np.trunc: _whole(_math.trunc),
    np.rint: _real(_math.roundeven),
    np.fabs: _real(_math.absf),
    np.reciprocal: _reciprocal,
    np.negative: _negative,
    np.positive: lambda _, x: x,
    np.conjugate: _conjugate,
    np.square: _square,
    np.sign: _sign,
    np.invert: lambda kind, x: arith.xori(x, _number(x, 1 if isinstance(kind, types.Boolean) else -1)),
}
_BINARY: Final[dict[np.ufunc, Operation]] = {
    np.maximum: _by_kind(arith.maximumf, arith.maxsi, arith.maxui),
    np.minimum: _by_kind(arith.minimumf, arith.minsi, arith.minui),
    np.fmax: _by_kind(arith.maxnumf, arith.maxsi, arith.maxui),
    np.fmin: _by_kind(arith.minnumf, arith.minsi, arith.minui),
    np.copysign: lambda _, x, y: _math.copysign(x, y),
    np.power: _power,
    np.float_power: _power,
    np.logaddexp: _log_of_sum(_math.log1p, _math.exp, float(np.log(2))),
    np.logaddexp2: _log_of_sum(_log2_1p, _math.exp2, 1.0),
    np.bitwise_and: lambda _, x, y: arith.andi(x, y),
    np.bitwise_or: lambda _, x, y: arith.ori(x, y),
    np.bitwise_xor: lambda _, x, y: arith.xori(x, y),
}
_OF_OPERANDS: Final[dict[np.ufunc, Operation]] = {
    np.absolute: _absolute,
    np.isnan: _asks(arith.ori, _is_nan, of_integer=False),
    np.isfinite: _asks(arith.andi, _is_finite, of_integer=True),
    np.isinf: _asks(arith.ori, _is_infinite, of_integer=False),
    np.signbit: _sign_bit,
    np.logical_and: _logical(arith.andi),
    np.logical_or: _logical(arith.ori),
    np.logical_xor: _logical(arith.xori),
    np.logical_not: lambda operand: _negated(_truth(*operand)),
}
_LIKE_OPERATORS: Final[dict[np.ufunc, Callable[..., None]]] = {
    np.add: lowering_math.iadd_cg,
    np.subtract: lowering_math.sub_cg,
    np.multiply: lowering_math.mul_cg,
    np.true_divide: _divide,
    np.floor_divide: floor_divide,
    np.remainder: remainder,
    np.fmod: _fmod,
    np.left_shift: shifted_left,
    np.right_shift: shifted_right,
    np.equal: equal,
    np.not_equal: not_equal,
    np.less: _ordered(lowering_math.lt_cg),
    np.less_equal: _ordered(lowering_math.le_cg),
    np.greater: _ordered(lowering_math.gt_cg),
    np.greater_equal: _ordered(lowering_math.ge_cg),
    np.hypot: lowering_math.math_hypot_cg,
    np.arctan2: arctan2,
    np.nextafter: lowering_math.math_nextafter_cg,
}


def _register() -> None:
    found = {
        **{function: _in_type_of_result(operation) for function, operation in (_UNARY | _BINARY).items()},
        **{function: _in_types_of_operands(operation) for function, operation in _OF_OPERANDS.items()},
        **_LIKE_OPERATORS,
    }
    kinds = (types.Float, types.Integer, types.Boolean, types.Complex)
    for function, lower in found.items():
        for operands in product(kinds, repeat=function.nin):
            lower_builtin(function, *operands)(lower)
    # Widened first; the compiler's own negates an unsigned integer and then repeats its highest bit.
    lower_builtin(operator.neg, types.Integer)(_in_type_of_result(_negative))
    lower_builtin(operator.neg, types.Boolean)(_in_type_of_result(_negative))
    lower_builtin(abs, types.Complex)(_in_types_of_operands(_absolute))
    lower_builtin(abs, types.Boolean)(_in_type_of_result(lambda _, value: value))


_register()
