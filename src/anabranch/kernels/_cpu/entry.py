"""The C function around a compiled kernel.

::

    int64_t entry(int64_t begin, int64_t end, const int64_t* dims, const void* args);

It calls the kernel, which LLVM inlines, for each index ``begin <= i < end`` of the row-major index space `dims`, with
the arguments in the 8-byte slots of `args`. It returns `end`, or the first index at which the kernel failed and the
loop stopped. It is fast because:

* the range is cut into boxes (see `loop_nest`), so each axis has a plain loop, without division;
* pointers, shapes and strides of the arrays are values of the function with the loops, loaded before them;
* LLVM sees that the index is at least 0, so the wraparound of a negative index in ``x[i]`` folds away;
* a kernel that does no more with its index than to subscript arrays of the launch's shape has one loop (see `flat`);
* a second version, for arguments that allow it, checks neither whether arrays overlap nor where in the array an
  index is (see `loop_versioning`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import types

from anabranch.kernels._cpu.loop_nest import TAIL, Box, Inner, Nest, load_sizes, loop_boxes
from anabranch.kernels._cpu.loop_versioning import Better
from anabranch.kernels._cpu.slots import Slots, places_of

_I64: Final = ir.IntType(64)


def index_type(launch_ndim: int) -> Any:
    """Return the Numba type of the index: an int, or a tuple of them for several dimensions."""
    return types.int64 if launch_ndim == 1 else types.UniTuple(types.int64, launch_ndim)


def add_entry(
    context: Any,
    library: Any,
    kernel: Any,
    symbol: str,
    launch_ndim: int,
    sources: Sequence[Any],
    at_index: Collection[int],
) -> None:
    """Add the entry `symbol` to the library that holds the compiled `kernel`.

    Parameters
    ----------
    context, library
        Numba's target context and code library.
    kernel
        Numba's description of the compiled function; its arguments are the index, then one per source.
    sources
        Numba type of each argument's slots: an array, or a scalar before its cast.
    at_index
        See `flat.arrays_at_index`.
    """
    module = library.create_ir_module("anabranch.entry")
    callee = context.declare_function(module, kernel)
    better = Better.of(library.compiled(kernel), kernel, launch_ndim, sources)

    def add_nest(name: str, inner: Inner) -> Any:
        nest = Nest.declare(module, f"{symbol}.{name}", launch_ndim, pointers=len(better.arrays) if better else 0)
        known = better.known(context, nest) if better and name == "better" else {}
        reader = Slots(context, nest.builder, nest.slots, known)
        arguments = [reader.read(source, target) for source, target in zip(sources, kernel.argtypes[1:], strict=True)]

        def call_kernel(index: Sequence[Any], position: Any) -> None:
            first = index[0] if launch_ndim == 1 else context.make_tuple(nest.builder, kernel.argtypes[0], index)
            status, _ = context.call_conv.call_function(
                nest.builder, callee, kernel.restype, kernel.argtypes, [first, *arguments]
            )
            with nest.builder.if_then(status.is_error, likely=False):
                nest.builder.ret(position)

        nest.add_loops(inner, call_kernel)
        return nest.function

    entry = ir.Function(module, ir.FunctionType(_I64, [_I64, _I64, *TAIL]), symbol)
    begin, end, dims, slots = entry.args
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    pointers: Sequence[Any] = ()
    if better:
        function = builder.select(
            better.holds(context, builder, dims, slots),
            add_nest("better", better.inner()),
            add_nest("plain", Inner(0, better.hints_for_others())),
        )
        pointers = better.data(builder, slots)
    else:
        function = add_nest("plain", Inner())
    if at_index and not (better and better.compares()):
        places = places_of(sources)
        arrays = [places[position - 1] for position in sorted(at_index)]
        dims = _flattened(builder, dims, slots, arrays, launch_ndim, end)

    def call_nest(box: Box) -> None:
        failed = builder.call(function, [*box.starts, *box.stops, dims, slots, *pointers])
        with builder.if_then(builder.icmp_signed(">=", failed, _I64(0)), likely=False):
            builder.ret(failed)

    loop_boxes(builder, begin, end, load_sizes(builder, dims, launch_ndim), call_nest)
    builder.ret(end)
    library.add_entry_module(module)


def _flattened(builder: Any, dims: Any, slots: Any, arrays: Sequence[int], ndim: int, end: Any) -> Any:
    """Return the sizes ``1, ..., 1, end`` for a launch of the shape of its arrays, given by their slots, else `dims`.

    The index (0, ..., 0, k) is then at the same place in the arrays, which are contiguous, as the launch's k-th index.
    """
    flat = builder.alloca(_I64, _I64(ndim))
    for axis in range(ndim):
        builder.store(end if axis == ndim - 1 else _I64(1), builder.gep(flat, [_I64(axis)]))
    same = ir.Constant(ir.IntType(1), 1)
    for axis in range(1, ndim):
        size = builder.load(builder.gep(dims, [_I64(axis)]))
        for place in arrays:
            length = builder.load(builder.gep(slots, [_I64(place + 1 + axis)]))
            same = builder.and_(same, builder.icmp_signed("==", length, size))
    return builder.select(same, flat, dims)
