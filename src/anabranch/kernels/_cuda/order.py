"""Order and rounding of numbers in kernels on CUDA, where the compiler differs from Python.

It takes unsigned integers for signed ones in comparisons with floats, and in `min` and `max`, which ignore nan; and it
rounds halves away from zero. The rules replace the compiler's only while it compiles a kernel of Anabranch.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import builtins as lowering_builtins
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

from anabranch.kernels._cuda.division import follows_numpy

_COMPARISONS: Final = {
    operator.lt: (arith.CmpFPredicate.OLT, lowering_math.lt_cg),
    operator.le: (arith.CmpFPredicate.OLE, lowering_math.le_cg),
    operator.gt: (arith.CmpFPredicate.OGT, lowering_math.gt_cg),
    operator.ge: (arith.CmpFPredicate.OGE, lowering_math.ge_cg),
    operator.eq: (arith.CmpFPredicate.OEQ, lowering_math.eq_cg),
}


# Arguments of `min` and `max`.
_MOST_COMPARED: Final = 4


def _values(builder: Any, kind: Any, args: Any) -> list[Any]:
    return [builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args]


def _register_comparison(function: Any) -> None:
    predicate, original = _COMPARISONS[function]

    def compare(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        kinds = [builder.get_numba_type(arg.name) for arg in args]
        if not follows_numpy() or any(
            getattr(kind, "signed", True) for kind in kinds if isinstance(kind, types.Integer)
        ):
            original(builder, target, args, kwargs)
            return
        builder.store_var(target, arith.cmpf(predicate, *_values(builder, types.float64, args)))

    lower_builtin(function, types.Integer, types.Float)(compare)
    lower_builtin(function, types.Float, types.Integer)(compare)


def _is_before(kind: Any, one: Any, other: Any) -> Any:
    if isinstance(kind, types.Float):
        return arith.cmpf(arith.CmpFPredicate.OLT, one, other)
    signed = getattr(kind, "signed", False)
    return arith.cmpi(arith.CmpIPredicate.slt if signed else arith.CmpIPredicate.ult, one, other)


def _register_extreme(function: Any, is_better: Callable[[Any, Any, Any], Any], original: Any) -> None:
    """Choose the first of the best arguments; nan is neither better nor worse than another."""

    def choose(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        kind = builder.get_numba_type(target.name)
        if not follows_numpy() or not isinstance(kind, types.Integer | types.Float | types.Boolean):
            original(builder, target, args, kwargs)
            return

        def better(best: Any, value: Any) -> Any:
            return arith.select(is_better(kind, value, best), value, best)

        builder.store_var(target, functools.reduce(better, _values(builder, kind, args)))

    for count in range(2, _MOST_COMPARED + 1):
        for kinds in itertools.product((types.Number, types.Boolean), repeat=count):
            lower_builtin(function, *kinds)(choose)


@lower_builtin(round, types.Number)  # type: ignore[untyped-decorator]
def _round(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    own, kind = builder.get_numba_type(args[0].name), builder.get_numba_type(target.name)
    if not follows_numpy() or not isinstance(own, types.Integer | types.Float | types.Boolean):
        lowering_builtins.lower_round_single(builder, target, args, kwargs)
        return
    value = builder.load_var(args[0])
    if isinstance(own, types.Float):
        value = lowering_math.math_dialect.roundeven(value)
    builder.store_var(target, builder.lower_cast(own, kind, value))


for _function in _COMPARISONS:
    _register_comparison(_function)
_register_extreme(min, _is_before, lowering_builtins.lower_min)
_register_extreme(max, lambda kind, one, other: _is_before(kind, other, one), lowering_builtins.lower_max)
