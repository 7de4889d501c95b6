"""Views of arrays at tuples, slices and ``...`` in kernels on CUDA, as Python defines them.

Slices have any step, and are clipped to the ends of the axis.

The compiler takes a slice literally: without these rules, ends below 0 or past the axis lead out of the array, steps
other than 1 give views of the wrong size in several dimensions, and a step of 0 divides by zero. It knows no ``...``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import arith, index_of, ir, memref
from numba_cuda_mlir.numba_cuda import types

from anabranch.kernels._cuda.failure import if_, is_active, report

_Axis = tuple[Any, Any, Any, bool]  # an axis of a view: offset, size, step, and whether it is dropped
_LESS: Final = arith.CmpIPredicate.slt


class _Slice(NamedTuple):
    start: Any
    stop: Any
    step: Any


def _as_slice(index: Any) -> _Slice | None:
    if all(hasattr(index, name) for name in _Slice._fields):
        return _Slice(index.start, index.stop, index.step)
    return None


def _minimum(one: Any, other: Any) -> Any:
    return arith.select(arith.cmpi(_LESS, one, other), one, other)


def _maximum(one: Any, other: Any) -> Any:
    return arith.select(arith.cmpi(_LESS, one, other), other, one)


def _cut(index: Any, size: Any, low: Any, high: Any) -> Any:
    """Return an end of a slice, counted from the axis' end if negative, clipped to `low` and `high`."""
    index = index_of(index)
    index = arith.select(arith.cmpi(_LESS, index, index_of(0)), arith.addi(index, size), index)
    return _minimum(_maximum(index, low), high)


def _along(found: _Slice, size: Any) -> _Axis:
    zero, one = index_of(0), index_of(1)
    if found.step is None or (isinstance(found.step, int) and found.step == 1):
        start = zero if found.start is None else _cut(found.start, size, zero, size)
        stop = size if found.stop is None else _cut(found.stop, size, zero, size)
        return start, _maximum(arith.subi(stop, start), zero), one, False
    step = index_of(found.step)
    with if_(arith.cmpi(arith.CmpIPredicate.eq, step, zero)):
        report("ValueError: slice step cannot be zero")
    backwards = arith.cmpi(_LESS, step, zero)
    low = arith.select(backwards, index_of(-1), zero)
    high = arith.select(backwards, arith.subi(size, one), size)
    start = arith.select(backwards, high, low) if found.start is None else _cut(found.start, size, low, high)
    stop = arith.select(backwards, low, high) if found.stop is None else _cut(found.stop, size, low, high)
    length = arith.select(backwards, arith.subi(start, stop), arith.subi(stop, start))
    stride = arith.select(backwards, arith.subi(zero, step), step)
    # The reporting code ends the thread, but the compiler must not see a division by 0 either.
    stride = _maximum(stride, one)
    count = arith.divui(arith.addi(_maximum(length, zero), arith.subi(stride, one)), stride)
    return start, count, step, False


def _expanded(indices: Sequence[Any], kinds: Sequence[Any], rank: int) -> tuple[list[Any], list[Any]]:
    """Return indices with slices in place of ``...``, and their types."""
    if not any(index is ... for index in indices):
        return list(indices), list(kinds)
    at = next(number for number, index in enumerate(indices) if index is ...)
    count = rank - len(indices) + 1
    whole = [_Slice(None, None, None)] * count
    return [*indices[:at], *whole, *indices[at + 1 :]], [*kinds[:at], *[None] * count, *kinds[at + 1 :]]


def view(array: Any, indices: Sequence[Any], kinds: Sequence[Any]) -> Any:
    """Return the part of an array at indices of these types, the first ones for the first axes."""
    indices, kinds = _expanded(indices, kinds, array.type.rank)
    axes: list[_Axis] = []
    for axis in range(array.type.rank):
        size = memref.dim(array, index_of(axis))
        if axis >= len(indices):
            axes.append((index_of(0), size, index_of(1), False))
            continue
        found = _as_slice(indices[axis])
        if found is not None:
            axes.append(_along(found, size))
            continue
        at = lowering_numpy._normalize_negative_index(array, indices[axis], axis, kinds[axis])
        axes.append((at, index_of(1), index_of(1), True))
    offsets, sizes, steps, dropped = map(list, zip(*axes, strict=True))
    if any(dropped):
        return lowering_numpy._rank_reducing_subview(array, offsets, sizes, steps, dropped)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    kind = ir.MemRefType.get(
        shape=[ir.ShapedType.get_dynamic_size()] * array.type.rank,
        element_type=array.type.element_type,
        layout=ir.StridedLayoutAttr.get(offset=dynamic, strides=[dynamic] * array.type.rank),
        memory_space=array.type.memory_space,
    )
    return memref.subview(array, offsets=offsets, sizes=sizes, strides=steps, result_type=kind)


@lower_builtin(operator.getitem, types.Array, types.SliceType)  # type: ignore[untyped-decorator]
def _get_slice(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_numpy.lower_array_slice_getitem(builder, target, args, kwargs)
        return
    index = builder.load_var(args[1])
    builder.store_var(target, view(builder.load_var(args[0]), [index], [None]))


@lower_builtin(operator.getitem, types.Array, types.UniTuple)  # type: ignore[untyped-decorator]
@lower_builtin(operator.getitem, types.Array, types.Tuple)  # type: ignore[untyped-decorator]
def _get_tuple(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    indices = builder.load_var(args[1])
    array = builder.load_var(args[0])
    if not (is_active() and is_part(indices) and isinstance(array.type, ir.MemRefType) and array.type.has_rank):
        lowering_numpy.lower_array_tuple_getitem(builder, target, args, kwargs)
        return
    builder.store_var(target, view(array, indices, builder.get_numba_type(args[1].name).types))


@lower_builtin(operator.getitem, types.Array, types.EllipsisType)  # type: ignore[untyped-decorator]
def _get_whole(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    builder.store_var(target, builder.load_var(args[0]))


def is_part(index: Any) -> bool:
    """Whether a tuple of indices stands for a part of an array, not for an element."""
    return isinstance(index, tuple) and any(each is ... or _as_slice(each) is not None for each in index)
