"""Stores in arrays at tuples, slices, ``...`` and single indices in kernels on CUDA, as NumPy defines them.

A part of an array takes a number, a tuple of numbers or an array, as in ``row[1:] = 0``, ``y[i] = a, b, c`` and
``y[i] = x[i]``. The compiler stores only numbers, and only where the index is no tuple.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, memref
from numba_cuda_mlir.lowering_utilities import scf
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.typing.arraydecl import get_array_index_type
from numba_cuda_mlir.numba_cuda.typing.templates import signature

from anabranch.kernels._cuda.failure import if_, is_active, report
from anabranch.kernels._cuda.in_place import Operand
from anabranch.kernels._cuda.indexing import store
from anabranch.kernels._cuda.overlap import overlap_of
from anabranch.kernels._cuda.reduction import each_element
from anabranch.kernels._cuda.slices import is_part, view
from anabranch.kernels._cuda.variable import assigned
from anabranch.kernels._failure import NO_BROADCAST, SHARED_ELEMENTS

_NUMBERS: Final = (types.Number, types.Boolean)
_PARTS: Final = (types.Array, types.UniTuple, types.Tuple, types.NamedUniTuple, types.NamedTuple)


def type_of_store(array: Any, index: Any, value: Any) -> Any:
    """Return the signature of a store of a tuple of numbers in a part of an array; None for any other store."""
    if not isinstance(array, types.Array) or not isinstance(value, types.BaseTuple) or len(value) == 0:
        return None
    found = get_array_index_type(array, index)
    if found is None or not array.mutable or not isinstance(found.result, types.Array):
        return None
    fits = all(isinstance(kind, _NUMBERS) for kind in value) and (
        isinstance(array.dtype, types.Complex) or not any(isinstance(kind, types.Complex) for kind in value)
    )
    return signature(types.none, array, found.index, value) if fits else None


@lower_builtin(operator.setitem, types.Array, types.Tuple, types.Any)  # type: ignore[untyped-decorator]
@lower_builtin(operator.setitem, types.Array, types.UniTuple, types.Any)  # type: ignore[untyped-decorator]
def _set_at_tuple(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_numpy.lower_array_setitem_tuple(builder, target, args, kwargs)
        return
    array = builder.load_var(args[0])
    index = builder.load_var(args[1])
    kinds = builder.get_numba_type(args[1].name)
    if is_part(index) or len(kinds.types) < builder.get_numba_type(args[0].name).ndim:
        _fill(builder, view(array, index, kinds.types), args)
        return
    indices = lowering_numpy._setitem_indices_to_memref_indices(array, index, kinds)
    store(builder, builder.get_numba_type(args[0].name), array, indices, args[2])


def _fill_slice(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        lowering_numpy.lower_array_slice_setitem(builder, target, args, kwargs)
        return
    _fill(builder, view(builder.load_var(args[0]), [builder.load_var(args[1])], [None]), args)


def _fill_row(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        raise NotImplementedError("a store in a row")
    index, kind = builder.load_var(args[1]), builder.get_numba_type(args[1].name)
    _fill(builder, view(builder.load_var(args[0]), [index], [kind]), args)


for _value in (*_NUMBERS, *_PARTS):
    for _index in (types.SliceType, types.EllipsisType):
        lower_builtin(operator.setitem, types.Array, _index, _value)(_fill_slice)
for _value in _PARTS:
    lower_builtin(operator.setitem, types.Array, types.Integer, _value)(_fill_row)


def _fill(builder: Any, part: Any, args: Any) -> None:
    """Store a value in each element of a part: an array, an index and the value are the arguments of the store."""
    rank = part.type.rank
    kind = builder.get_numba_type(args[0].name).copy(ndim=rank, layout="A")
    value = builder.get_numba_type(args[2].name)
    if isinstance(value, types.Array):
        operand = Operand(builder, args[2], args[2], part)
        place = _order(part, operand.array) if rank == value.ndim == 1 else lambda at: at
        each_element(part, lambda at: store(builder, kind, part, place(at), operand.at(place(at))))
    elif isinstance(value, types.BaseTuple):
        number = _of_tuple(builder, kind.dtype, part, args[2])
        each_element(part, lambda at: store(builder, kind, part, at, number(at)))
    elif rank == 0:
        store(builder, kind, part, [], args[2])
    else:
        sizes = [memref.dim(part, index_of(axis)) for axis in range(rank)]

        @scf.forall_([index_of(0)] * rank, sizes, [index_of(1)] * rank)  # type: ignore[untyped-decorator]
        def fill(*at: Any) -> None:
            store(builder, kind, part, list(at), args[2])


def _order(part: Any, other: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a function from the number of a step to the place that is stored then, before which `other` is read."""
    found = overlap_of(part, other)
    size = memref.dim(part, index_of(0))
    of_other = memref.dim(other, index_of(0))
    is_same_size = arith.cmpi(arith.CmpIPredicate.eq, of_other, size)
    differs = arith.xori(found.is_shifted, arith.constant(T.bool(), value=True))
    with if_(arith.andi(found.shares, arith.andi(differs, is_same_size))):
        report(f"ValueError: {SHARED_ELEMENTS}")
    backwards = arith.andi(found.shares, found.is_ahead)
    last = arith.subi(size, index_of(1))
    return lambda at: [arith.select(backwards, arith.subi(last, at[0]), at[0])]


def _of_tuple(builder: Any, dtype: Any, part: Any, variable: Any) -> Any:
    """Return a function from the place of an element in a part to a variable with the number of a tuple for it."""
    kinds = builder.get_numba_type(variable.name)
    values = builder.load_var(variable)
    held = types.float32 if dtype == types.float16 else dtype
    with builder.alloca_insertion_point():
        table = memref.alloca(T.memref(len(kinds), builder.get_mlir_type(held)), [], [])
    for place, kind in enumerate(kinds):
        value = values[place] if isinstance(values, tuple) else memref.load(values, [index_of(place)])
        memref.store(builder.lower_cast(kind, held, value), table, [index_of(place)])
    size = memref.dim(part, index_of(part.type.rank - 1))
    if len(kinds) > 1:
        with if_(arith.cmpi(arith.CmpIPredicate.ne, size, index_of(len(kinds)))):
            report(f"ValueError: {NO_BROADCAST}")

    def number(at: list[Any]) -> Any:
        value = memref.load(table, [index_of(0) if len(kinds) == 1 else at[-1]])
        return assigned(builder, variable, "part", held, value)

    return number
