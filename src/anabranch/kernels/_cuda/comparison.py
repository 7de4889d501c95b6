"""Comparison of floats in kernels on CUDA, where the compiler differs from Python: nan is not equal to anything.

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


@lower_builtin(operator.ne, types.Float, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Float, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ne, types.Integer, types.Float)  # type: ignore[untyped-decorator]
def _not_equal(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not follows_numpy():
        lowering_math.ne_cg(builder, target, args, kwargs)
        return
    left, right = (builder.get_numba_type(arg.name) for arg in args)
    kind = left if left == right else types.float64
    values = [
        builder.lower_cast(own, kind, builder.load_var(arg)) for own, arg in zip((left, right), args, strict=True)
    ]
    # The compiler's own predicate asks whether both are numbers and differ.
    builder.store_var(target, arith.cmpf(arith.CmpFPredicate.UNE, *values))
