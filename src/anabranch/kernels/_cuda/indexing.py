"""Elements and lengths of arrays, slices and ranges in kernels on CUDA, where the compiler differs from Python.

Its integers have no sign. It extends indices and ends of ranges of unsigned types by their highest bit; and what is
stored at a tuple, or in a slice, by zeros, also from signed types (`slices` has the stores). The length of an array of
several dimensions is its size. A slice without a start begins at 0, also with a negative step.
"""

from __future__ import annotations

from typing import Any, Final

from numba_cuda_mlir import lowering_utilities, types
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import builtins as lowering_builtins
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import arith, index_of, memref

from anabranch.kernels._cuda.failure import is_active

_normalized: Final = lowering_numpy._normalize_negative_index


def normalized(array: Any, index: Any, axis: int, kind: Any = None) -> Any:
    """Return an index of a type `kind` along an axis, counted from the axis' end if it is negative.

    `element.element_access` has the compiler use it.
    """
    return _normalized(array, _widened(kind, index), axis, kind)


def _widened(kind: Any, value: Any) -> Any:
    """Return an integer of a narrow unsigned type in 64 bits, all else as it is."""
    if isinstance(kind, types.Integer) and not kind.signed and kind.bitwidth < types.int64.bitwidth:
        return lowering_utilities.convert(value, lowering_utilities.T.i64(), signed=False)
    return value


def store(builder: Any, kind: Any, array: Any, indices: Any, value: Any) -> None:
    """Store the variable `value` in an element of an array of the type `kind`."""
    lowering_utilities.array_element_value_store(
        kind,
        array,
        indices,
        builder.load_var(value),
        signed=lowering_utilities.get_conversion_signedness(builder.get_numba_type(value.name), kind.dtype),
    )


@lower_builtin(len, types.Array)  # type: ignore[untyped-decorator]
def _length(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_numpy.len_cg(builder, target, args, kwargs)
        return
    size = memref.dim(builder.load_var(args[0]), index_of(0))
    builder.store_var(target, arith.index_cast(builder.get_mlir_type(builder.get_numba_type(target.name)), size))


@lower_builtin(slice, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _slice(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_numpy.lower_array_slice(builder, target, args, kwargs)
        return
    kinds = [builder.get_numba_type(arg.name) for arg in args]
    ends = [_widened(kind, builder.load_var(arg)) for kind, arg in zip(kinds, args, strict=True)]
    only_stop = len(args) == 1
    found = lowering_numpy.Slice(*([None] if only_stop else []), *ends)
    if only_stop or isinstance(kinds[0], types.NoneType):
        found.start = None  # for which the compiler has 0, also where the step is negative
    builder.store_var(target, found)


@lower_builtin(range, types.Number)  # type: ignore[untyped-decorator]
@lower_builtin(range, types.Number, types.Number)  # type: ignore[untyped-decorator]
@lower_builtin(range, types.Number, types.Number, types.Number)  # type: ignore[untyped-decorator]
def _range(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_builtins.lower_range(builder, target, args, kwargs)
        return
    kind = builder.get_numba_type(target.name).dtype
    ends = [builder.lower_cast(builder.get_numba_type(arg.name), kind, builder.load_var(arg)) for arg in args]
    start = ends[0] if len(ends) > 1 else arith.constant(ends[0].type, value=0)
    step = ends[2] if len(ends) == 3 else arith.constant(start.type, value=1)
    builder.store_var(target, lowering_builtins.RangeObject(builder, start, ends[min(len(ends), 2) - 1], step))
