"""Comparison in kernels on CUDA, where the compiler differs from Python: nan is not equal to anything.

The compiler has no comparison of complex numbers at all: they are equal if both parts are. The rules replace the
compiler's only while it compiles a kernel of Anabranch.
"""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.division import follows_numpy

_complex = lowering_math.complex_dialect


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
