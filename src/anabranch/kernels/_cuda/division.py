"""Division in kernels on CUDA as NumPy defines it, where the hardware leaves it undefined or the compiler differs.

* Integers by zero: 0. The least integer by -1: itself, and no remainder.
* Complex numbers by zero: inf and nan with the signs of the dividend; otherwise Smith's method, as on a CPU.

These rules replace the compiler's only while it compiles a kernel of Anabranch.
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

_complex: Final = lowering_math.complex_dialect
_active: Final = threading.local()


@contextmanager
def numpy_division() -> Iterator[None]:
    """Apply NumPy's rules for division and comparison to code that this thread compiles during the block."""
    _active.on = True
    try:
        yield
    finally:
        _active.on = False


def follows_numpy() -> bool:
    """Return whether this thread is in such a block."""
    return getattr(_active, "on", False)


def _operands(builder: Any, kind: Any, args: Any) -> tuple[Any, Any, Any, Any]:
    """Return the dividend, a divisor that is neither 0 nor a signed -1, and whether the original was either."""
    left, right = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
    one = arith.constant(right.type, value=1)
    was_zero = arith.cmpi(arith.CmpIPredicate.eq, right, arith.constant(right.type, value=0))
    right = arith.select(was_zero, one, right)
    if not kind.signed:
        return left, right, was_zero, None
    was_minus_one = arith.cmpi(arith.CmpIPredicate.eq, right, arith.constant(right.type, value=-1))
    return left, arith.select(was_minus_one, one, right), was_zero, was_minus_one


def _is_ours(builder: Any, target: Any) -> bool:
    return follows_numpy() and isinstance(builder.get_numba_type(target.name), types.Integer)


@lower_builtin(operator.floordiv, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.ifloordiv, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def floor_divide(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not _is_ours(builder, target):
        lowering_math.floordiv_cg(builder, target, args, kwargs)
        return
    builder.store_var(target, _quotient(builder, builder.get_numba_type(target.name), args))


def _quotient(builder: Any, kind: Any, args: Any) -> Any:
    left, right, was_zero, was_minus_one = _operands(builder, kind, args)
    quotient = arith.floordivsi(left, right) if kind.signed else arith.divui(left, right)
    zero = arith.constant(quotient.type, value=0)
    if was_minus_one is not None:
        quotient = arith.select(was_minus_one, arith.subi(zero, left), quotient)
    return arith.select(was_zero, zero, quotient)


@lower_builtin(operator.mod, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(operator.imod, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def remainder(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not _is_ours(builder, target):
        lowering_math.mod_cg(builder, target, args, kwargs)
        return
    builder.store_var(target, _rest(builder, builder.get_numba_type(target.name), args))


def _rest(builder: Any, kind: Any, args: Any) -> Any:
    left, right, _, _ = _operands(builder, kind, args)  # dividing by 1 leaves the expected remainder 0
    if not kind.signed:
        return arith.remui(left, right)
    # The result has the divisor's sign.
    rest = arith.remsi(left, right)
    zero = arith.constant(rest.type, value=0)
    wrong_sign = arith.cmpi(arith.CmpIPredicate.slt, arith.xori(rest, right), zero)
    nonzero = arith.cmpi(arith.CmpIPredicate.ne, rest, zero)
    fix = arith.select(arith.andi(wrong_sign, nonzero), right, zero)
    return arith.addi(rest, fix)


@lower_builtin(divmod, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(divmod, types.Integer, types.Float)  # type: ignore[untyped-decorator]
@lower_builtin(divmod, types.Float, types.Integer)  # type: ignore[untyped-decorator]
@lower_builtin(divmod, types.Float, types.Float)  # type: ignore[untyped-decorator]
def _divmod(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    kind = builder.get_numba_type(target.name).dtype
    if isinstance(kind, types.Integer):
        both = _quotient(builder, kind, args), _rest(builder, kind, args)
    else:
        values = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
        both = lowering_math._float_divmod(builder, *values)
    builder.store_var(target, both)


@lower_builtin(operator.truediv, types.Complex, types.Complex)  # type: ignore[untyped-decorator]
@lower_builtin(operator.itruediv, types.Complex, types.Complex)  # type: ignore[untyped-decorator]
def complex_quotient(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not follows_numpy():
        lowering_math.truediv_cg(builder, target, args, kwargs)
        return
    kind = builder.get_numba_type(target.name)
    a, b = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
    (a_real, a_imag), (b_real, b_imag) = ((_complex.re(value), _complex.im(value)) for value in (a, b))
    size_real, size_imag = (_absolute(part) for part in (b_real, b_imag))
    by_real = arith.cmpf(arith.CmpFPredicate.OGE, size_real, size_imag)
    # By the larger part of the divisor; if both are zero, by zero.
    ratio = arith.divf(*_chosen(by_real, (b_imag, b_real), (b_real, b_imag)))
    larger, smaller = _chosen(by_real, (b_real, b_imag), (b_imag, b_real))
    scale = arith.addf(larger, arith.mulf(smaller, ratio))
    real = arith.addf(*_chosen(by_real, (a_real, arith.mulf(a_imag, ratio)), (arith.mulf(a_real, ratio), a_imag)))
    imag = arith.subf(*_chosen(by_real, (a_imag, arith.mulf(a_real, ratio)), (arith.mulf(a_imag, ratio), a_real)))
    zero = arith.constant(size_real.type, value=0.0)
    is_zero = arith.andi(by_real, arith.cmpf(arith.CmpFPredicate.OEQ, size_real, zero))
    parts = [
        arith.select(is_zero, arith.divf(part, size_real), arith.divf(rest, scale))
        for part, rest in ((a_real, real), (a_imag, imag))
    ]
    builder.store_var(
        target,
        _complex.create_(complex=builder.get_mlir_type(kind), real=parts[0], imaginary=parts[1]),
    )


def _absolute(value: Any) -> Any:
    zero = arith.constant(value.type, value=0.0)
    size = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, value, zero), arith.negf(value), value)
    return arith.addf(size, zero)  # removes the sign of a zero


def _chosen(condition: Any, first: Any, second: Any) -> list[Any]:
    return [arith.select(condition, one, other) for one, other in zip(first, second, strict=True)]
