"""The packed arguments of a launch, in the layout that a compiled kernel reads.

A scalar has one 8-byte slot, a complex number two. An array has a slot for its address, then slots for its shape, then
slots for its strides in bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import types

_I64: Final = ir.IntType(64)
_F64: Final = ir.DoubleType()


def places_of(sources: Sequence[Any]) -> list[int]:
    """Return the first slot of each argument, given the Numba types that the slots hold."""
    places, slot = [], 0
    for source in sources:
        places.append(slot)
        slot += 1 + 2 * source.ndim if isinstance(source, types.Array) else 1 + isinstance(source, types.Complex)
    return places


class Slots:
    """Reads packed arguments in sequence; `known` has values of slots that need not be read."""

    def __init__(self, context: Any, builder: Any, slots: Any, known: Mapping[int, Any]) -> None:
        self._context = context
        self._builder = builder
        self._slots = slots
        self._known = known
        self._next = 0

    def read(self, source: Any, target: Any) -> Any:
        """Return the next argument, stored as `source`, as a value of type `target`."""
        if isinstance(source, types.Array):
            return self._array(source)
        if isinstance(source, types.Complex):
            parts = self._context.make_complex(self._builder, types.complex128)
            parts.real = self._load(_F64)
            parts.imag = self._load(_F64)
            return self._scalar(parts._getvalue(), types.complex128, source, target)
        if isinstance(source, types.Float):
            return self._scalar(self._load(_F64), types.float64, source, target)
        stored = types.uint64 if source in types.unsigned_domain else types.int64
        return self._scalar(self._load(_I64), stored, source, target)

    def _load(self, kind: Any) -> Any:
        slot, self._next = self._next, self._next + 1
        if slot in self._known:
            return self._known[slot]
        pointer = self._builder.gep(self._slots, [_I64(slot)])
        return self._builder.load(self._builder.bitcast(pointer, kind.as_pointer()))

    def _scalar(self, value: Any, stored: Any, source: Any, target: Any) -> Any:
        narrow = self._context.cast(self._builder, value, stored, source)
        return self._context.cast(self._builder, narrow, source, target)

    def _array(self, kind: Any) -> Any:
        context, builder = self._context, self._builder
        address, pointer = self._load(_I64), context.get_data_type(kind.dtype).as_pointer()
        is_pointer = isinstance(address.type, ir.PointerType)
        data = builder.bitcast(address, pointer) if is_pointer else builder.inttoptr(address, pointer)
        shape = [self._load(_I64) for _ in range(kind.ndim)]
        strides = [self._load(_I64) for _ in range(kind.ndim)]
        nitems = functools.reduce(builder.mul, shape, _I64(1))
        itemsize = _I64(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        model = context.data_model_manager[kind]
        array = model.get_value_type()(None)  # no owner and no parent: Numba counts no references
        parts = {"data": data, "nitems": nitems, "itemsize": itemsize, "shape": shape, "strides": strides}
        for name, part in parts.items():
            place = model.get_field_position(name)
            if isinstance(part, list):
                for axis, value in enumerate(part):
                    array = builder.insert_value(array, value, [place, axis])
            else:
                array = builder.insert_value(array, part, place)
        return array
