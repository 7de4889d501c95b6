"""Access to array elements in kernels on CUDA: bounds checks, and 32-bit offsets where they suffice.

The compiler multiplies in 64 bits, which takes a GPU several instructions: a three-dimensional stencil takes a third
longer. A kernel that is not *wide* is launched only for arrays whose offsets fit 32 bits. For a contiguous array the
sizes alone determine an element's offset.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from numba_cuda_mlir import lowering_utilities, types
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, ir, llvm, memref

from anabranch._launch.target import Target
from anabranch.kernels._cuda.failure import check_indices
from anabranch.kernels._cuda.indexing import normalized
from anabranch.kernels._cuda.refusal import RefusedError
from anabranch.kernels._wording import not_stored

_load: Final = lowering_utilities.array_element_value_load
_store: Final = lowering_utilities.array_element_value_store
_subview: Final = lowering_numpy._rank_reducing_subview
# PTX type and register constraint of loads without order to stores, by the type in memory.
_UNORDERED: Final = {"i32": ("u32", "r"), "i64": ("u64", "l"), "f32": ("f32", "f"), "f64": ("f64", "d")}
# Whether this thread compiles a kernel that is not wide.
_state: Final = threading.local()


@contextmanager
def element_access(target: Target, unordered: bool) -> Iterator[None]:
    """Use this access in code compiled during the block. The caller must hold the compiler's lock.

    With `unordered`, loads need no order with stores, see `kernels._cuda.straight`.
    """

    def load(kind: Any, array: Any, indices: Sequence[Any], *, dynamic_shared_memory: bool = False) -> Any:
        _check(array, indices)
        if dynamic_shared_memory or not narrow(array, indices):
            return _read(kind, _load(kind, array, indices, dynamic_shared_memory=dynamic_shared_memory))
        storage = lowering_utilities.get_storage_type(kind.dtype)
        pointer = narrow_pointer(kind, array, indices, storage)
        if unordered and str(storage) in _UNORDERED:
            stored = _unordered_load(storage, pointer)
        else:
            stored = lowering_utilities.llvm_ptr_load(storage, pointer)
        return _read(kind, lowering_utilities.storage_to_value(kind.dtype, stored))

    def store(
        kind: Any,
        array: Any,
        indices: Sequence[Any],
        value: Any,
        *,
        dynamic_shared_memory: bool = False,
        signed: bool | None = None,
    ) -> None:
        _refuse_complex(kind, value)
        _check(array, indices)
        if dynamic_shared_memory or not narrow(array, indices):
            _store(kind, array, indices, value, dynamic_shared_memory=dynamic_shared_memory, signed=signed)
            return
        stored = lowering_utilities.value_to_storage(kind.dtype, value, signed=signed)
        lowering_utilities.llvm_ptr_store(stored, narrow_pointer(kind, array, indices, stored.type))

    changes: list[tuple[Any, str, Any]] = [
        (lowering_utilities, "array_element_value_load", load),
        (lowering_utilities, "array_element_value_store", store),
        (lowering_numpy, "_rank_reducing_subview", _checked_subview),
        (lowering_numpy, "_normalize_negative_index", normalized),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, replacement in changes:
        setattr(owner, name, replacement)
    _state.narrow = not target.wide
    try:
        yield
    finally:
        _state.narrow = False
        for owner, name, original in before:
            setattr(owner, name, original)


def _read(kind: Any, value: Any) -> Any:
    """Return an element as kernels read it: a float16 as a float32."""
    return arith.extf(T.f32(), value) if kind.dtype == types.float16 else value


def _unordered_load(storage: Any, pointer: Any) -> Any:
    """Load an element that nothing writes while the kernel runs. The assembler may move the load before stores.

    The compiler's dialect for GPUs up to Hopper ignores invariant loads, hence the inline assembly.
    """
    suffix, register = _UNORDERED[str(storage)]
    return llvm.inline_asm(
        storage, [pointer], f"ld.global.nc.{suffix} $0, [$1];", f"={register},l", has_side_effects=False
    )


def _is_whole(array: Any, indices: Sequence[Any]) -> bool:
    return isinstance(array.type, ir.MemRefType) and array.type.has_rank and len(indices) == array.type.rank


def _refuse_complex(kind: Any, value: Any) -> None:
    """Raise `RefusedError` for a complex number in an array of others; the compiler would drop its imaginary part."""
    part = re.match(r"complex<f(\d+)>", str(value.type))
    if part is not None and not isinstance(kind.dtype, types.Complex):
        raise RefusedError(not_stored(str(kind.dtype), f"complex{2 * int(part[1])}"))


def _check(array: Any, indices: Sequence[Any]) -> None:
    if _is_whole(array, indices) and indices:
        check_indices([index_of(index) for index in indices], _sizes(array, len(indices)))


def _checked_subview(array: Any, offsets: Any, sizes: Any, steps: Any, dropped: Any) -> Any:
    taken = [axis for axis, is_dropped in enumerate(dropped) if is_dropped]
    # Indexed axes come first, except for slices before them, whose offsets are in bounds.
    if taken:
        first = taken[-1] + 1
        bounds = _sizes(array, first)
        whole = [index_of(offsets[axis]) if dropped[axis] else index_of(0) for axis in range(first)]
        bounds = [size if dropped[axis] else index_of(1) for axis, size in enumerate(bounds)]
        check_indices(whole, bounds)
    return _subview(array, offsets, sizes, steps, dropped)


def _sizes(array: Any, count: int) -> list[Any]:
    return [memref.dim(array, index_of(axis)) for axis in range(count)]


def narrow(array: Any, indices: Sequence[Any]) -> bool:
    """Return whether the offset of an element fits 32 bits in the kernel that is compiled."""
    return getattr(_state, "narrow", False) and _is_whole(array, indices)


def narrow_pointer(kind: Any, array: Any, indices: Sequence[Any], element: Any) -> Any:
    """Return the address of an element, whose offset fits 32 bits; `kind` is the array's type."""
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
