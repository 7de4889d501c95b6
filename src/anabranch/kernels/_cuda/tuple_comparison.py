"""Comparisons of tuples in kernels on CUDA, of which the compiler has none, and ``in``.

The compiler finds NaN in every tuple of floats, and takes no integers for parts if the item is a float.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import builtins as lowering_builtins
from numba_cuda_mlir.lowering.cuda import T, arith
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._cuda.failure import is_active
from anabranch.kernels._cuda.variable import assigned, declared


class _Pairs:
    """The items of two tuples, compared with each other. A number beside a tuple has as many items as that."""

    def __init__(self, builder: Any, target: Any, args: Any) -> None:
        self._builder, self._target = builder, target
        self._kinds = [builder.get_numba_type(arg.name) for arg in args]
        self._values = [builder.load_var(arg) for arg in args]
        count = max(len(kind) for kind in self._kinds if isinstance(kind, types.BaseTuple))
        for side, kind in enumerate(self._kinds):
            if isinstance(kind, types.BaseTuple):
                self._kinds[side] = list(kind)
            else:
                self._kinds[side], self._values[side] = [kind] * count, [self._values[side]] * count
        self.lengths = [len(kinds) for kinds in self._kinds]

    def compare(self, function: Any, number: int) -> Any:
        """Return the comparison of the items of a number."""
        builder, target = self._builder, self._target
        label = f"{function.__name__}_{number}"
        sides = [
            assigned(builder, target, f"{label}_{side}", self._kinds[side][number], self._values[side][number])
            for side in range(2)
        ]
        result = declared(builder, target, label, types.boolean)
        builder.lower_binop_expr_assign(result, function, *sides)
        return builder.load_var(result)


def _truth(value: bool) -> Any:
    return arith.constant(T.bool(), value=value)


def _are_equal(pairs: _Pairs) -> Any:
    one, other = pairs.lengths
    equal = _truth(one == other)
    for number in range(one if one == other else 0):
        equal = arith.andi(equal, pairs.compare(operator.eq, number))
    return equal


def _are_different(pairs: _Pairs) -> Any:
    return arith.xori(_are_equal(pairs), _truth(True))


def _contains(pairs: _Pairs) -> Any:
    found = _truth(False)
    for number in range(pairs.lengths[0]):
        found = arith.ori(found, pairs.compare(operator.eq, number))
    return found


def _in_order(function: Any, strict: Any) -> Callable[[_Pairs], Any]:
    """Return the comparison for order: the first items that differ decide, then the lengths."""

    def compare(pairs: _Pairs) -> Any:
        result = _truth(function(*pairs.lengths))
        for number in reversed(range(min(pairs.lengths))):
            result = arith.select(pairs.compare(operator.eq, number), result, pairs.compare(strict, number))
        return result

    return compare


_OF_TUPLES: Final = {
    operator.eq: _are_equal,
    operator.ne: _are_different,
    operator.lt: _in_order(operator.lt, operator.lt),
    operator.le: _in_order(operator.le, operator.lt),
    operator.gt: _in_order(operator.gt, operator.gt),
    operator.ge: _in_order(operator.ge, operator.gt),
}


def _register_tuples(function: Any) -> None:
    def compare(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        builder.store_var(target, _OF_TUPLES[function](_Pairs(builder, target, args)))

    lower_builtin(function, types.BaseTuple, types.BaseTuple)(compare)


def _register_contains(kind: Any, original: Callable[..., None]) -> None:
    def contains(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not is_active():
            original(builder, target, args, kwargs)
            return
        builder.store_var(target, _contains(_Pairs(builder, target, args)))

    for item in (types.Number, types.Boolean):
        lower_builtin(operator.contains, kind, item)(contains)


for _function in _OF_TUPLES:
    _register_tuples(_function)
_register_contains(types.Tuple, lowering_builtins.tuple_contains_cg)
_register_contains(types.UniTuple, lowering_builtins.unituple_contains_cg)
