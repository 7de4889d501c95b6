"""Functions as arguments of helpers in kernels on CUDA, as in ``step(acceleration, x, time)``.

A function has a type of its own, which says all of it. The compiler would pass it as an operand, for which there is no
machine type; here it is left out of the call, as the compiler leaves out None.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from numba_cuda_mlir import mlir_lowering
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir

from anabranch.kernels._cuda.failure import lowers_statements

_is_omitted: Final = mlir_lowering._is_omitted_arg


def _is_left_out(kind: Any) -> bool:
    return isinstance(kind, types.Function) or bool(_is_omitted(kind))


@contextmanager
def callbacks() -> Iterator[None]:
    """Leave functions out of calls in code compiled during the block. The caller must hold the compiler's lock."""
    mlir_lowering._is_omitted_arg = _is_left_out
    try:
        yield
    finally:
        mlir_lowering._is_omitted_arg = _is_omitted


@lowers_statements
def _take(builder: Any, inst: Any) -> bool:
    """Generate the statement in which a helper takes such an argument; return False for any other."""
    if not isinstance(getattr(inst, "value", None), ir.Arg):
        return False
    kind = builder.get_numba_type(inst.target.name)
    if not isinstance(kind, types.Function):
        return False
    builder.store_var(inst.target, kind.typing_key)
    return True
