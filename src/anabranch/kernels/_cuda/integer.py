"""Types in which numba-cuda-mlir takes integers and elements of float16 while it compiles a kernel of Anabranch."""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir import types
from numba_cuda_mlir.descriptor import mlir_target

from anabranch.kernels._cuda.division import follows_numpy
from anabranch.kernels._integer import operand_types


def _replace_rule(context: Any) -> None:
    """Have the compiler's only typing context take operands as `operand_types` says, and read float32 for float16."""
    resolve = context.resolve_function_type

    def resolve_function_type(func: Any, args: Any, kws: Any) -> Any:
        if follows_numpy():
            args = operand_types(getattr(func, "typing_key", func), args, types.Integer, types.int64)
        found = resolve(func, args, kws)
        if follows_numpy() and func is operator.getitem and found is not None and found.return_type == types.float16:
            return found.replace(return_type=types.float32)
        return found

    context.resolve_function_type = resolve_function_type


_replace_rule(mlir_target.typing_context)
