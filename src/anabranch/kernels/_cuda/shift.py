"""Shifts of integers in kernels on CUDA as NumPy defines them.

A shift by as many bits as there are, or more, leaves 0, or -1 of a negative number to the right. The compiler leaves
the result of such counts undefined.
"""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.division import follows_numpy


def _operands(builder: Any, target: Any, args: Any) -> tuple[Any, Any, Any]:
    """Return the number, the count, and the number of bits less one, all of the type of the result."""
    kind = builder.get_numba_type(target.name)
    value, count = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
    return value, count, arith.constant(value.type, value=kind.bitwidth - 1)


@lower_builtin(operator.lshift, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ilshift, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def shifted_left(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Lower a shift to the left."""
    if not follows_numpy():
        lowering_math.lshift_cg(builder, target, args, kwargs)
        return
    value, count, last = _operands(builder, target, args)
    zero = arith.constant(value.type, value=0)
    fits = arith.cmpi(arith.CmpIPredicate.ule, count, last)
    shifted = arith.shli(value, arith.select(fits, count, zero))
    builder.store_var(target, arith.select(fits, shifted, zero))


@lower_builtin(operator.rshift, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.irshift, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def shifted_right(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Lower a shift to the right."""
    if not follows_numpy():
        lowering_math.rshift_cg(builder, target, args, kwargs)
        return
    value, count, last = _operands(builder, target, args)
    fits = arith.cmpi(arith.CmpIPredicate.ule, count, last)
    count = arith.select(fits, count, last)
    if builder.get_numba_type(target.name).signed:
        builder.store_var(target, arith.shrsi(value, count))
        return
    builder.store_var(target, arith.select(fits, arith.shrui(value, count), arith.constant(value.type, value=0)))
