"""Sums, differences and products of integers on CUDA, which wrap around as on a CPU.

The compiler marks those of signed integers as free of overflow (``nsw``), and concludes signs from that. The mark stays
where operands are too small to overflow, since wraparound tests of indices such as ``u[i - 1, 2 * j]`` fold by it.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final, NamedTuple

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import arith
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir

from anabranch.kernels._cuda.division import follows_numpy

_OPERATIONS: Final = {
    operator.add: arith.addi,
    operator.iadd: arith.addi,
    operator.sub: arith.subi,
    operator.isub: arith.subi,
    operator.mul: arith.muli,
    operator.imul: arith.muli,
}
# Bits of what counts as a position (an index of the launch, a size, the variable of a loop over a range), and of the
# greatest position.
_SMALL: Final = 31
_FAR: Final = 40
# Longer chains of operations count as unknown.
_DEEPEST: Final = 8


_compiled: Final = threading.local()


@contextmanager
def index_of(kernel: FunctionType) -> Iterator[None]:
    """Take the first argument of `kernel` for an index of the launch in code that this thread compiles in the block."""
    _compiled.kernel = kernel
    try:
        yield
    finally:
        _compiled.kernel = None


def _is_index(builder: Any, argument: Any) -> bool:
    return argument.index == 0 and builder.func_ir.func_id.func is getattr(_compiled, "kernel", None)


def _register(function: Any) -> None:
    operation = _OPERATIONS[function]
    plain = getattr(operator, function.__name__.removeprefix("i"))

    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        kind = builder.get_numba_type(target.name)
        signed = isinstance(kind, types.Integer) and kind.signed
        if not follows_numpy() or not signed or _size_of_result(builder, function, args).bits < 64:
            lowering_math._bin_op_cg(plain, builder, target, args, kwargs)
            return
        operands = (builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args)
        builder.store_var(target, operation(*operands))

    lower_builtin(function, types.Integer, types.Integer)(lower)


class _Size(NamedTuple):
    """How many bits the absolute value of an integer may have; see `_cpu.overflow.Range` for the rest."""

    bits: int
    is_position: bool = False
    multiplied: bool = True


_UNKNOWN: Final = _Size(64)


def _size_of_result(builder: Any, function: Any, args: Any, depth: int = 0) -> _Size:
    one, other = (_size_of(builder, arg, depth) for arg in args)
    position = (one.is_position or other.is_position) and max(one.bits, other.bits) <= _FAR
    if _OPERATIONS[function] is not arith.muli:
        return _Size(max(one.bits, other.bits) + 1, position, one.multiplied and other.multiplied)
    if one.is_position and other.is_position and position and args[0].name != args[1].name:
        return _Size(max(one.bits, other.bits), True, one.multiplied and other.multiplied)
    return _Size(one.bits + other.bits, position) if one.multiplied and other.multiplied else _UNKNOWN


def _size_of(builder: Any, variable: Any, depth: int) -> _Size:
    kind = builder.get_numba_type(variable.name)
    if isinstance(kind, types.IntegerLiteral):
        return _Size(abs(kind.literal_value).bit_length())
    if isinstance(kind, types.Boolean):
        return _Size(1)
    if not isinstance(kind, types.Integer):
        return _UNKNOWN
    found = _size_of_value(builder, variable, depth)
    return found if found.bits < kind.bitwidth else _Size(kind.bitwidth - kind.signed)


def _size_of_value(builder: Any, variable: Any, depth: int) -> _Size:
    try:
        value = builder.func_ir.get_definition(variable)
    except KeyError:  # assigned more than once
        return _UNKNOWN
    if isinstance(value, numba_ir.Const | numba_ir.Global | numba_ir.FreeVar):
        return _Size(abs(value.value).bit_length()) if isinstance(value.value, int) else _UNKNOWN
    if isinstance(value, numba_ir.Arg):
        return _Size(_SMALL, True, builder.func_ir.func_id.func is getattr(_compiled, "kernel", None))
    if not isinstance(value, numba_ir.Expr) or depth > _DEEPEST:
        return _UNKNOWN
    if value.op == "cast":
        return _size_of(builder, value.value, depth + 1)
    if value.op in ("binop", "inplace_binop") and value.fn in _OPERATIONS:
        return _size_of_result(builder, value.fn, (value.lhs, value.rhs), depth + 1)
    if value.op in ("binop", "inplace_binop") and value.fn in (operator.floordiv, operator.ifloordiv):
        return _size_of(builder, value.lhs, depth + 1)
    if value.op in ("binop", "inplace_binop") and value.fn in (operator.mod, operator.imod):
        return min(_size_of(builder, value.rhs, depth + 1), _size_of(builder, value.lhs, depth + 1))
    if value.op in ("static_getitem", "exhaust_iter", "getitem", "pair_first"):
        return _Size(_SMALL, True) if _is_small(builder, value.value, depth) else _UNKNOWN
    return _UNKNOWN


def _is_small(builder: Any, variable: Any, depth: int) -> bool:
    """Whether a tuple has indices of the launch or sizes, or an iterator is over a range."""
    kind = builder.get_numba_type(variable.name)
    try:
        value = builder.func_ir.get_definition(variable)
    except KeyError:
        return False
    if isinstance(value, numba_ir.Arg):
        return _is_index(builder, value)
    if not isinstance(value, numba_ir.Expr) or depth > _DEEPEST:
        return False
    if value.op == "getattr":
        return bool(value.attr == "shape")
    if value.op == "iternext":
        return isinstance(builder.get_numba_type(value.value.name), types.RangeIteratorType)
    if value.op in ("exhaust_iter", "cast"):
        return _is_small(builder, value.value, depth + 1)
    return isinstance(kind, types.RangeIteratorType)


for _function in _OPERATIONS:
    _register(_function)
