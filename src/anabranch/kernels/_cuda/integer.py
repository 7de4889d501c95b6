"""Types in which numba-cuda-mlir takes integers while it compiles a kernel of Anabranch."""

from __future__ import annotations

from typing import Any

from numba_cuda_mlir import types
from numba_cuda_mlir.descriptor import mlir_target

from anabranch.kernels._cuda.division import follows_numpy
from anabranch.kernels._integer import operand_types


def _replace_rule(context: Any) -> None:
    """Have the compiler's only typing context take operands as `operand_types` says."""
    resolve = context.resolve_function_type

    def resolve_function_type(func: Any, args: Any, kws: Any) -> Any:
        if follows_numpy():
            args = operand_types(getattr(func, "typing_key", func), args, types.Integer, types.int64)
        return resolve(func, args, kws)

    context.resolve_function_type = resolve_function_type


_replace_rule(mlir_target.typing_context)
