"""Constants in kernels on CUDA for which the compiler has no code: ``...``, tuples of tuples, and tuples in modules."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir

from anabranch.kernels._cuda.failure import lowers_statements


@lowers_statements
def _lower_constant(lower: Any, statement: Any) -> bool:
    """Generate the code of a statement that assigns such a constant; return whether it does."""
    value = getattr(statement, "value", None)
    if isinstance(value, ir.Const) and value.value is ...:
        lower.store_var(statement.target, ...)  # what `slices` looks for
        return True
    if (
        isinstance(value, ir.Const)
        and isinstance(value.value, tuple)
        and any(isinstance(v, tuple) for v in value.value)
    ):
        lower.lower_global_assign(statement.target, ir.Global("tuple", value.value, value.loc))
        return True
    if not isinstance(value, ir.Expr) or value.op != "getattr":
        return False
    kind = lower.get_numba_type(value.value.name)
    found = getattr(kind.pymod, value.attr, None) if isinstance(kind, types.Module) else None
    if not isinstance(found, tuple) or not isinstance(kind.pymod, ModuleType):
        return False
    lower.lower_global_assign(statement.target, ir.Global(value.attr, found, value.loc))
    return True
