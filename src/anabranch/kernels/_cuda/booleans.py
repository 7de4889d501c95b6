"""Booleans as numbers in kernels on CUDA: 0 and 1, for which the compiler lacks most operators."""

from __future__ import annotations

import operator
from typing import Any, Final

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._cuda.failure import is_active
from anabranch.kernels._cuda.variable import converted

_OF_NUMBERS: Final = (
    *(operator.imul, operator.truediv, operator.itruediv, operator.floordiv, operator.ifloordiv),
    *(operator.mod, operator.imod, operator.lshift, operator.ilshift, operator.rshift, operator.irshift),
    *(operator.ipow, divmod),
)
# The compiler compares booleans with integers.
_COMPARISONS: Final = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def _register(function: Any, others: tuple[Any, ...]) -> None:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not is_active():
            raise NotImplementedError(f"{function.__name__} of a boolean")
        operands = [
            converted(builder, target, types.int64, arg)
            if isinstance(builder.get_numba_type(arg.name), types.Boolean)
            else arg
            for arg in args
        ]
        kinds = [builder.get_numba_type(operand.name) for operand in operands]
        lower_numbers = builder.get_registered_builder(function, builder.get_numba_type(target.name)(*kinds))
        lower_numbers(builder, target, operands, kwargs)

    for other in others:
        lower_builtin(function, types.Boolean, other)(lower)
        lower_builtin(function, other, types.Boolean)(lower)


for _function in _OF_NUMBERS:
    _register(_function, (types.Boolean, types.Integer, types.Float, types.Complex))
for _function in _COMPARISONS:
    _register(_function, (types.Float, types.Complex))
