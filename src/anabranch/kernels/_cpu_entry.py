"""The C function around a compiled kernel.

::

    int64_t entry(int64_t begin, int64_t end, const int64_t* dims, const void* args);

It unpacks the 8-byte slots of `args` once and calls the kernel, which LLVM inlines, for each
index ``begin <= i < end`` of the row-major index space `dims`. It returns `end`, or the first index
at which the kernel failed, after which it has run none. What decides the speed of the loop:

* the arrays' pointers, shapes and strides are values of the function, loaded before the loop;
* an index is known to be at least 0, so the wraparound of ``x[i]`` for negative ones folds away;
* of a launch of several dimensions the last one is a plain inner loop, with no division.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

_I64: Final = ir.IntType(64)
_F64: Final = ir.DoubleType()
_NO_WRAP: Final = ("nuw", "nsw")


def index_type(launch_ndim: int) -> Any:
    """Return the Numba type of the index: an int, or a tuple of them for several dimensions."""
    return types.int64 if launch_ndim == 1 else types.UniTuple(types.int64, launch_ndim)


def add_entry(context: Any, library: Any, kernel: Any, symbol: str, launch_ndim: int, sources: Sequence[Any]) -> None:
    """Add the entry `symbol` to the library that holds the compiled `kernel`.

    Parameters
    ----------
    context, library
        Numba's target context and code library.
    kernel
        Numba's description of the compiled function; its arguments are the index, then one per source.
    sources
        Numba type that the slots of each argument hold: an array, or a scalar before its cast.
    """
    module = library.create_ir_module("anabranch.entry")
    signature = ir.FunctionType(_I64, [_I64, _I64, _I64.as_pointer(), _I64.as_pointer()])
    entry = ir.Function(module, signature, symbol)
    begin, end, dims, slots = entry.args
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    callee = context.declare_function(module, kernel)
    reader = _Slots(context, builder, slots)
    arguments = [reader.read(source, target) for source, target in zip(sources, kernel.argtypes[1:], strict=True)]

    def call(index: Sequence[Any], position: Any) -> None:
        first = index[0] if launch_ndim == 1 else context.make_tuple(builder, kernel.argtypes[0], index)
        status, _ = context.call_conv.call_function(
            builder, callee, kernel.restype, kernel.argtypes, [first, *arguments]
        )
        with builder.if_then(status.is_error, likely=False):
            builder.ret(position)

    begin = _at_least_zero(builder, begin)
    if launch_ndim == 1:
        _loop(builder, begin, end, lambda i: call([i], i))
    else:
        with builder.if_then(builder.icmp_signed("<", begin, end)):
            _loop_rows(builder, begin, end, dims, launch_ndim, call)
    builder.ret(end)
    library.add_entry_module(module)


class _Slots:
    """Reads the packed arguments one after the other."""

    def __init__(self, context: Any, builder: Any, slots: Any) -> None:
        self._context = context
        self._builder = builder
        self._slots = slots
        self._next = 0

    def read(self, source: Any, target: Any) -> Any:
        """Return the next argument, stored as `source`, as a value of the type `target`."""
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
        pointer = self._builder.gep(self._slots, [_I64(self._next)])
        self._next += 1
        return self._builder.load(self._builder.bitcast(pointer, kind.as_pointer()))

    def _scalar(self, value: Any, stored: Any, source: Any, target: Any) -> Any:
        narrow = self._context.cast(self._builder, value, stored, source)
        return self._context.cast(self._builder, narrow, source, target)

    def _array(self, kind: Any) -> Any:
        context, builder = self._context, self._builder
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(self._load(_I64), context.get_data_type(kind.dtype).as_pointer())
        shape = [self._load(_I64) for _ in range(kind.ndim)]
        strides = [self._load(_I64) for _ in range(kind.ndim)]
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        arrayobj.populate_array(array, data, shape, strides, itemsize, None)
        return array._getvalue()


def _at_least_zero(builder: Any, value: Any) -> Any:
    """Return `value`, which is at least 0, in a form from which LLVM sees it (an assumption gets lost)."""
    return builder.select(builder.icmp_signed("<", value, _I64(0)), _I64(0), value)


def _loop(builder: Any, start: Any, stop: Any, body: Any) -> None:
    """Emit ``for (i = start; i < stop; ++i) body(i)`` in the form LLVM vectorises."""
    before = builder.block
    loop = builder.append_basic_block("loop")
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", start, stop), loop, after)
    builder.position_at_end(loop)
    i = builder.phi(_I64)
    i.add_incoming(start, before)
    body(i)
    following = builder.add(i, _I64(1), flags=_NO_WRAP)
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)
    builder.position_at_end(after)


def _loop_rows(builder: Any, begin: Any, end: Any, dims: Any, ndim: int, call: Any) -> None:
    """Emit the loops over rows, each the part of one that lies within the range."""
    sizes = [builder.load(builder.gep(dims, [_I64(axis)])) for axis in range(ndim)]
    coordinates = [cgutils.alloca_once(builder, _I64) for _ in range(ndim)]
    rest = begin
    for axis in reversed(range(1, ndim)):
        builder.store(builder.urem(rest, sizes[axis]), coordinates[axis])
        rest = builder.udiv(rest, sizes[axis])
    builder.store(rest, coordinates[0])

    before = builder.block
    rows = builder.append_basic_block("rows")
    after = builder.append_basic_block("rows.after")
    builder.branch(rows)
    builder.position_at_end(rows)
    position = builder.phi(_I64)
    position.add_incoming(begin, before)
    *outer, start = [_at_least_zero(builder, builder.load(coordinate)) for coordinate in coordinates]
    to_range_end = builder.add(start, builder.sub(end, position))
    in_row = builder.icmp_signed("<", to_range_end, sizes[-1])
    stop = builder.select(in_row, to_range_end, sizes[-1])
    first = builder.sub(position, start)
    _loop(builder, start, stop, lambda last: call([*outer, last], builder.add(first, last)))
    _next_row(builder, sizes, coordinates)
    following = builder.add(position, builder.sub(stop, start), flags=_NO_WRAP)
    position.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), rows, after)
    builder.position_at_end(after)


def _next_row(builder: Any, sizes: Sequence[Any], coordinates: Sequence[Any]) -> None:
    builder.store(_I64(0), coordinates[-1])
    carry = _I64(1)
    for axis in reversed(range(len(sizes) - 1)):
        value = builder.add(builder.load(coordinates[axis]), carry)
        full = builder.icmp_signed("==", value, sizes[axis])
        builder.store(builder.select(full, _I64(0), value), coordinates[axis])
        carry = builder.zext(full, _I64)
