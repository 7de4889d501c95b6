"""Elements of arrays in kernels on CUDA: checked, and found in 32 bits where these hold every offset.

The compiler's own way multiplies in 64 bits, which a GPU does in several instructions: a stencil in three dimensions
takes a third longer by that. A kernel that is not *wide* is launched only for arrays whose offsets fit 32 bits. Of a
contiguous array the sizes alone say where an element is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, ir, llvm, memref

from anabranch._launch.target import Target
from anabranch.kernels._cuda.failure import check_indices

_load: Final = lowering_utilities.array_element_value_load
_store: Final = lowering_utilities.array_element_value_store
_subview: Final = lowering_numpy._rank_reducing_subview
# The type and the register of loads that need no order with stores, by the type in memory.
_UNORDERED: Final = {"i32": ("u32", "r"), "i64": ("u64", "l"), "f32": ("f32", "f"), "f64": ("f64", "d")}


@contextmanager
def element_access(target: Target, unordered: bool) -> Iterator[None]:
    """Have elements found so in what is compiled meanwhile. For holders of the compiler's lock.

    With `unordered`, no load needs to be kept in order with a store, see `kernels._cuda.straight`.
    """

    def load(kind: Any, array: Any, indices: Sequence[Any], *, dynamic_shared_memory: bool = False) -> Any:
        _check(array, indices)
        if target.wide or dynamic_shared_memory or not _is_whole(array, indices):
            return _load(kind, array, indices, dynamic_shared_memory=dynamic_shared_memory)
        storage = lowering_utilities.get_storage_type(kind.dtype)
        pointer = _pointer(kind, array, indices, storage)
        if unordered and str(storage) in _UNORDERED:
            stored = _unordered_load(storage, pointer)
        else:
            stored = lowering_utilities.llvm_ptr_load(storage, pointer)
        return lowering_utilities.storage_to_value(kind.dtype, stored)

    def store(
        kind: Any,
        array: Any,
        indices: Sequence[Any],
        value: Any,
        *,
        dynamic_shared_memory: bool = False,
        signed: bool | None = None,
    ) -> None:
        _check(array, indices)
        if target.wide or dynamic_shared_memory or not _is_whole(array, indices):
            _store(kind, array, indices, value, dynamic_shared_memory=dynamic_shared_memory, signed=signed)
            return
        stored = lowering_utilities.value_to_storage(kind.dtype, value, signed=signed)
        lowering_utilities.llvm_ptr_store(stored, _pointer(kind, array, indices, stored.type))

    changes: list[tuple[Any, str, Any]] = [
        (lowering_utilities, "array_element_value_load", load),
        (lowering_utilities, "array_element_value_store", store),
        (lowering_numpy, "_rank_reducing_subview", _checked_subview),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, replacement in changes:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, original in before:
            setattr(owner, name, original)


def _unordered_load(storage: Any, pointer: Any) -> Any:
    """Load as what nothing writes while the kernel runs, which the assembler may move before stores.

    The compiler's dialect for GPUs up to Hopper ignores that a load is invariant, hence by assembly.
    """
    suffix, register = _UNORDERED[str(storage)]
    return llvm.inline_asm(
        storage, [pointer], f"ld.global.nc.{suffix} $0, [$1];", f"={register},l", has_side_effects=False
    )


def _is_whole(array: Any, indices: Sequence[Any]) -> bool:
    return isinstance(array.type, ir.MemRefType) and array.type.has_rank and len(indices) == array.type.rank


def _check(array: Any, indices: Sequence[Any]) -> None:
    if _is_whole(array, indices) and indices:
        check_indices([index_of(index) for index in indices], _sizes(array, len(indices)))


def _checked_subview(array: Any, offsets: Any, sizes: Any, steps: Any, dropped: Any) -> Any:
    taken = [axis for axis, is_dropped in enumerate(dropped) if is_dropped]
    # The axes that are taken come first but for slices before them, of which the offsets are in bounds.
    if taken:
        first = taken[-1] + 1
        bounds = _sizes(array, first)
        whole = [index_of(offsets[axis]) if dropped[axis] else index_of(0) for axis in range(first)]
        bounds = [size if dropped[axis] else index_of(1) for axis, size in enumerate(bounds)]
        check_indices(whole, bounds)
    return _subview(array, offsets, sizes, steps, dropped)


def _sizes(array: Any, count: int) -> list[Any]:
    return [memref.dim(array, index_of(axis)) for axis in range(count)]


def _pointer(kind: Any, array: Any, indices: Sequence[Any], element: Any) -> Any:
    base = lowering_utilities.memref_data_pointer(array)
    if not indices:
        return base
    narrow = [arith.index_cast(T.i32(), index_of(index)) for index in indices]
    offset = narrow[0]
    if kind.layout == "C":
        for index, size in zip(narrow[1:], _sizes(array, len(indices))[1:], strict=True):
            offset = arith.addi(arith.muli(offset, arith.index_cast(T.i32(), size)), index)
    else:
        strides = memref.extract_strided_metadata(array)[2 + len(indices) :]
        steps = [
            arith.muli(index, arith.index_cast(T.i32(), step)) for index, step in zip(narrow, strides, strict=True)
        ]
        offset = steps[0]
        for step in steps[1:]:
            offset = arith.addi(offset, step)
    return llvm.getelementptr(
        base.type,
        base,
        [arith.extsi(T.i64(), offset)],
        [lowering_utilities.GEP_DYNAMIC_INDEX],
        lowering_utilities.to_llvm_storable_type(element),
        None,
    )
