"""Stores of arrays and of tuples in parts of arrays in kernels on a CPU, as in ``y[i] = x[i]`` and ``y[i] = a, b, c``.

Numba copies an array first that may share elements with the part, in memory that a kernel does not have, and makes an
array of a tuple. Here the elements are stored one after the other; those of a shifted row, in the order that needs no
copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.typing import signature
from numba.core.typing.arraydecl import get_array_index_type
from numba.np import arrayobj

from anabranch.kernels._cpu.half import read_type
from anabranch.kernels._cpu.in_place import can_repeat
from anabranch.kernels._cpu.overlap import Row, overlap_of, row_of
from anabranch.kernels._failure import NO_BROADCAST, SHARED_ELEMENTS

_Read = Callable[[Any], Any]  # from the place of an element in the part to its value


def type_of_store(context: Any, array: Any, index: Any, value: Any) -> Any:
    """Return the signature of a store of numbers in a part of an array; None for any other store."""
    if not isinstance(array, types.Array) or not isinstance(value, types.Array | types.BaseTuple):
        return None
    found = get_array_index_type(array, index)
    if found is None or not array.mutable or not isinstance(found.result, types.Array):
        return None
    if isinstance(value, types.Array):
        fits = value.ndim <= found.result.ndim and context.can_convert(read_type(value.dtype), array.dtype) is not None
    else:
        fits = len(value) > 0 and all(
            isinstance(kind, types.Number | types.Boolean) and context.can_convert(kind, array.dtype) is not None
            for kind in value
        )
    return signature(types.none, array, found.index, value) if fits else None


def store_part(context: Any, builder: Any, sig: Any, args: Any) -> None:
    """Store an array or a tuple in a part of an array, repeated along axes that it lacks or that have the size 1."""
    kind, index_kind, value_kind = sig.args
    array = arrayobj.make_array(kind)(context, builder, args[0])
    is_tuple = isinstance(index_kind, types.BaseTuple)
    index_kinds = index_kind.types if is_tuple else (index_kind,)
    indices = cgutils.unpack_tuple(builder, args[1], len(index_kind)) if is_tuple else (args[1],)
    index_kinds, indices = arrayobj.normalize_indices(context, builder, index_kinds, indices)
    data, shape, strides = arrayobj.basic_indexing(
        context, builder, kind, array, index_kinds, indices, boundscheck=context.enable_boundscheck
    )
    if isinstance(value_kind, types.Array):
        read, read_kind = _from_array(context, builder, value_kind, args[2], shape)
    else:
        read, read_kind = _from_tuple(context, builder, value_kind, args[2], shape, kind.dtype), kind.dtype

    def store(at: Any) -> None:
        place = cgutils.get_item_pointer2(context, builder, data, shape, strides, "A", at)
        arrayobj.store_item(context, builder, kind, context.cast(builder, read(at), read_kind, kind.dtype), place)

    word = shape[0].type if shape else cgutils.intp_t
    if not isinstance(value_kind, types.Array) or len(shape) != 1 or value_kind.ndim != 1:
        with cgutils.loop_nest(builder, shape, word) as at:
            store(at)
        return
    row = row_of(context, builder, value_kind, args[2])
    found = overlap_of(builder, Row(data, shape[0], strides[0]), row)
    differs = builder.and_(builder.not_(found.is_shifted), builder.icmp_signed("!=", row.size, word(1)))
    with builder.if_then(builder.and_(found.shares, differs), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (SHARED_ELEMENTS,))
    with builder.if_else(builder.and_(found.shares, found.is_ahead), likely=False) as (backwards, forwards):
        with backwards, cgutils.for_range(builder, shape[0]) as loop:
            store([builder.sub(builder.sub(shape[0], word(1)), loop.index)])
        with forwards, cgutils.for_range(builder, shape[0]) as loop:
            store([loop.index])


def _from_array(context: Any, builder: Any, kind: Any, value: Any, shape: Any) -> tuple[_Read, Any]:
    array = arrayobj.make_array(kind)(context, builder, value)
    sizes = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
    strides = cgutils.unpack_tuple(builder, array.strides, kind.ndim)
    _check(context, builder, sizes, shape[len(shape) - kind.ndim :])
    repeated = [builder.icmp_signed("==", size, size.type(1)) for size in sizes]

    def read(at: Any) -> Any:
        own = zip(repeated, at[len(at) - kind.ndim :], strict=True)
        indices = [builder.select(is_one, index.type(0), index) for is_one, index in own]
        place = cgutils.get_item_pointer2(context, builder, array.data, sizes, strides, kind.layout, indices)
        element = arrayobj.load_item(context, builder, kind, place)
        return context.cast(builder, element, kind.dtype, read_type(kind.dtype))

    return read, read_type(kind.dtype)


def _from_tuple(context: Any, builder: Any, kind: Any, value: Any, shape: Any, dtype: Any) -> _Read:
    parts = cgutils.unpack_tuple(builder, value, len(kind))
    numbers = [context.cast(builder, part, own, dtype) for part, own in zip(parts, kind, strict=True)]
    table = cgutils.alloca_once(builder, numbers[0].type, size=len(numbers))
    for position, number in enumerate(numbers):
        builder.store(number, cgutils.gep_inbounds(builder, table, position))
    size = shape[-1].type(len(numbers))
    _check(context, builder, [size], shape[-1:])

    def read(at: Any) -> Any:
        position = at[-1].type(0) if len(numbers) == 1 else at[-1]
        return builder.load(builder.gep(table, [position], inbounds=True))

    return read


def _check(context: Any, builder: Any, sizes: Any, part: Any) -> None:
    """Emit a failure unless each size is that of the part, or 1."""
    with builder.if_then(builder.not_(can_repeat(builder, sizes, part)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (NO_BROADCAST,))
