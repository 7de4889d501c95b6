"""Integer division by zero in kernels on CUDA: 0, as in NumPy, where the hardware leaves it open.

These rules replace the compiler's own while a kernel of Anabranch is compiled, and at no other time.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith

_active: Final = threading.local()


@contextmanager
def numpy_division() -> Iterator[None]:
    """Make what this thread compiles meanwhile divide as NumPy does."""
    _active.on = True
    try:
        yield
    finally:
        _active.on = False


def _operands(builder: Any, kind: Any, args: Any) -> tuple[Any, Any, Any]:
    """Return the dividend, a divisor that is not 0, and whether it was."""
    left, right = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
    zero = arith.constant(right.type, value=0)
    was_zero = arith.cmpi(arith.CmpIPredicate.eq, right, zero)
    return left, arith.select(was_zero, arith.constant(right.type, value=1), right), was_zero


def _is_ours(builder: Any, target: Any) -> bool:
    return getattr(_active, "on", False) and isinstance(builder.get_numba_type(target.name), types.Integer)


@lower_builtin(operator.floordiv, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ifloordiv, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def _floordiv(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not _is_ours(builder, target):
        lowering_math.floordiv_cg(builder, target, args, kwargs)
        return
    kind = builder.get_numba_type(target.name)
    left, right, was_zero = _operands(builder, kind, args)
    quotient = arith.floordivsi(left, right) if kind.signed else arith.divui(left, right)
    builder.store_var(target, arith.select(was_zero, arith.constant(quotient.type, value=0), quotient))


@lower_builtin(operator.mod, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.imod, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def _mod(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not _is_ours(builder, target):
        lowering_math.mod_cg(builder, target, args, kwargs)
        return
    kind = builder.get_numba_type(target.name)
    left, right, _ = _operands(builder, kind, args)  # a remainder of a division by 1 is the 0 that is wanted
    if not kind.signed:
        builder.store_var(target, arith.remui(left, right))
        return
    # The result takes the sign of the divisor.
    rest = arith.remsi(left, right)
    zero = arith.constant(rest.type, value=0)
    wrong_sign = arith.cmpi(arith.CmpIPredicate.slt, arith.xori(rest, right), zero)
    nonzero = arith.cmpi(arith.CmpIPredicate.ne, rest, zero)
    fix = arith.select(arith.andi(wrong_sign, nonzero), right, zero)
    builder.store_var(target, arith.addi(rest, fix))
