"""Types in which numba-cuda-mlir takes integers and elements of float16 while it compiles a kernel of Anabranch."""

from __future__ import annotations

import operator
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.descriptor import mlir_target

from anabranch.kernels._cuda.division import follows_numpy
from anabranch.kernels._cuda.helper import type_of_own, type_of_value
from anabranch.kernels._cuda.in_place import in_place
from anabranch.kernels._cuda.iteration import type_of_reversed
from anabranch.kernels._cuda.math_functions import in_types_of_cpu
from anabranch.kernels._cuda.named_tuple import limits
from anabranch.kernels._cuda.optional import type_of_truth
from anabranch.kernels._cuda.parts import type_of_store
from anabranch.kernels._cuda.reduction import widened
from anabranch.kernels._integer import operand_types

_BITWISE: Final = frozenset(
    (operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor),
)


# Each returns the signature of the calls that it is for, and None for all others.
_RULES: Final = (in_place, limits, type_of_reversed, type_of_truth)


def _mixed_bits(function: Any, args: Any) -> Any:
    """Return wide types for an unsigned and another operand, whose bits the compiler takes for a signed number's."""
    if function not in _BITWISE or not all(isinstance(kind, types.Integer | types.Boolean) for kind in args):
        return args
    unsigned = [isinstance(kind, types.Integer) and not kind.signed for kind in args]
    if all(unsigned) or not any(unsigned):
        return args
    return tuple(kind if getattr(kind, "bitwidth", 1) == types.int64.bitwidth else types.int64 for kind in args)


def _as_numbers(function: Any, args: Any) -> Any:
    """Return integers for booleans beside numbers, for which the compiler has no `min` and no `max`."""
    if function not in (min, max) or all(isinstance(kind, types.Boolean) for kind in args):
        return args
    return tuple(types.int64 if isinstance(kind, types.Boolean) else kind for kind in args)


def _replace_rule(context: Any) -> None:
    """Have the compiler's only typing context take operands as `operand_types` says, and read float32 for float16."""
    resolve = context.resolve_function_type

    def resolve_function_type(func: Any, args: Any, kws: Any) -> Any:
        if not follows_numpy():
            return resolve(func, args, kws)
        function = getattr(func, "typing_key", func)
        for rule in _RULES:
            if (ours := rule(function, args)) is not None:
                return ours
        func = type_of_own(function) or func
        args = _mixed_bits(function, operand_types(function, _as_numbers(function, args), types.Integer, types.int64))
        found = widened(func, in_types_of_cpu(resolve, func, args, kws), args)
        if func is operator.getitem and found is not None and found.return_type == types.float16:
            return found.replace(return_type=types.float32)
        return found

    context.resolve_function_type = resolve_function_type
    resolve_value = context.resolve_value_type

    def resolve_value_type(val: Any) -> Any:
        return (follows_numpy() and type_of_value(val)) or resolve_value(val)

    context.resolve_value_type = resolve_value_type
    resolve_store = context.resolve_setitem

    def resolve_setitem(target: Any, index: Any, value: Any) -> Any:
        return (follows_numpy() and type_of_store(target, index, value)) or resolve_store(target, index, value)

    context.resolve_setitem = resolve_setitem


_replace_rule(mlir_target.typing_context)
