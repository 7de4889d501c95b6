"""Comparison and truth of numbers in kernels on CUDA, where the compiler differs from Python.

Nan is not equal to anything. The compiler compares no complex numbers and has no truth of them: they are equal if both
parts are. Of an `IntEnum` it has only the comparisons for order, where it takes unsigned integers for signed. Of a size
and of a constant float it takes the lowest bit for their truth. The rules replace the compiler's only while it compiles
a kernel of Anabranch.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import builtins as lowering_builtins
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import T, arith, ir
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._cuda.division import follows_numpy

_complex = lowering_math.complex_dialect
_OF_ENUMS: Final = {
    operator.eq: arith.CmpIPredicate.eq,
    operator.ne: arith.CmpIPredicate.ne,
    operator.lt: arith.CmpIPredicate.slt,
    operator.le: arith.CmpIPredicate.sle,
    operator.gt: arith.CmpIPredicate.sgt,
    operator.ge: arith.CmpIPredicate.sge,
}


def _operands(builder: Any, args: Any) -> tuple[Any, list[Any]] | None:
    """Return the type in which two numbers are compared, and both in it; None for two integers or booleans."""
    left, right = (builder.get_numba_type(arg.name) for arg in args)
    kind = next(
        (each for each in (types.Complex, types.Float) if isinstance(left, each) or isinstance(right, each)), None
    )
    if kind is None or not follows_numpy():
        return None
    common = left if left == right else types.complex128 if kind is types.Complex else types.float64
    return common, [
        builder.lower_cast(own, common, builder.load_var(arg)) for own, arg in zip((left, right), args, strict=True)
    ]


def _parts(kind: Any, value: Any) -> list[Any]:
    return [_complex.re(value), _complex.im(value)] if isinstance(kind, types.Complex) else [value]


@lower_builtin(operator.ne, types.Float, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Float, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Integer, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Complex, types.Number)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Number, types.Complex)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Complex, types.Complex)  # type: ignore[untyped-decorator]
def not_equal(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Lower a comparison of any two numbers."""
    operands = _operands(builder, args)
    if operands is None:
        lowering_math.ne_cg(builder, target, args, kwargs)
        return
    kind, values = operands
    # The compiler's own predicate asks whether both are numbers and differ.
    pairs = zip(*(_parts(kind, value) for value in values), strict=True)
    answers = [arith.cmpf(arith.CmpFPredicate.UNE, *pair) for pair in pairs]
    builder.store_var(target, answers[0] if len(answers) == 1 else arith.ori(*answers))


@lower_builtin(operator.eq, types.Complex, types.Number)  # type: ignore[untyped-decorator]
@lower_builtin(operator.eq, types.Number, types.Complex)  # type: ignore[untyped-decorator]
@lower_builtin(operator.eq, types.Complex, types.Complex)  # type: ignore[untyped-decorator]
def equal(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Lower a comparison of any two numbers."""
    operands = _operands(builder, args)
    if operands is None or not isinstance(operands[0], types.Complex):
        lowering_math.eq_cg(builder, target, args, kwargs)
        return
    kind, values = operands
    pairs = zip(*(_parts(kind, value) for value in values), strict=True)
    builder.store_var(target, arith.andi(*(arith.cmpf(arith.CmpFPredicate.OEQ, *pair) for pair in pairs)))


def _truth(builder: Any, variable: Any) -> Any:
    value = builder.load_var(variable)
    kind = builder.get_numba_type(variable.name)
    if isinstance(kind, types.Float | types.Complex):
        answers = [
            arith.cmpf(arith.CmpFPredicate.UNE, part, arith.constant(part.type, value=0.0))
            for part in _parts(kind, value)
        ]
        return answers[0] if len(answers) == 1 else arith.ori(*answers)
    if isinstance(value.type, ir.IndexType):
        value = arith.index_cast(T.i64(), value)
    return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(value.type, value=0))


@lower_builtin(bool, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(bool, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(bool, types.Complex)  # type: ignore[untyped-decorator]
def _is_true(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not follows_numpy():
        lowering_builtins.type_convert(builder, target, args, kwargs)
        return
    builder.store_var(target, _truth(builder, args[0]))


@lower_builtin(operator.not_, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.not_, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(operator.not_, types.Complex)  # type: ignore[untyped-decorator]
def _is_false(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not follows_numpy():
        lowering_builtins.lower_not(builder, target, args, kwargs)
        return
    builder.store_var(target, arith.xori(_truth(builder, args[0]), arith.constant(T.bool(), value=True)))


def _register_enums(function: Any) -> None:
    def compare(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        values = []
        for arg in args:
            kind = builder.get_numba_type(arg.name)
            own = kind.dtype if isinstance(kind, types.IntEnumMember) else kind
            values.append(builder.lower_cast(own, types.int64, builder.load_var(arg)))
        builder.store_var(target, arith.cmpi(_OF_ENUMS[function], *values))

    lower_builtin(function, types.Integer, types.IntEnumMember)(compare)
    lower_builtin(function, types.IntEnumMember, types.Integer)(compare)


for _function in _OF_ENUMS:
    _register_enums(_function)
