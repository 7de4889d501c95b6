"""The C function around a compiled kernel.

::

    int64_t entry(int64_t begin, int64_t end, const int64_t* dims, const void* args);

It calls the kernel, which LLVM inlines, for each index ``begin <= i < end`` of the row-major index space `dims`, with
the arguments in the 8-byte slots of `args`. It returns `end`, or the first index at which the kernel failed and the
loop stopped. It is fast because:

* the range is cut into boxes (see `loop_nest`), so each axis has a plain loop, without division;
* pointers, shapes and strides of the arrays are values of the function with the loops, loaded before them;
* LLVM sees that the index is at least 0, so the wraparound of a negative index in ``x[i]`` folds away;
* a second version, for arguments that allow it, checks neither whether arrays overlap nor where in the array an
  index is (see `loop_versioning`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import types

from anabranch.kernels._cpu.loop_nest import TAIL, Box, Inner, Nest, load_sizes, loop_boxes
from anabranch.kernels._cpu.loop_versioning import Better
from anabranch.kernels._cpu.slots import Slots

_I64: Final = ir.IntType(64)


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
        Numba type of each argument's slots: an array, or a scalar before its cast.
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
    begin, end, *tail = entry.args
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    if better:
        function = builder.select(
            better.holds(context, builder, *tail),
            add_nest("better", better.inner()),
            add_nest("plain", Inner(0, better.hints_for_others())),
        )
        tail += better.data(builder, tail[1])
    else:
        function = add_nest("plain", Inner())

    def call_nest(box: Box) -> None:
        failed = builder.call(function, [*box.starts, *box.stops, *tail])
        with builder.if_then(builder.icmp_signed(">=", failed, _I64(0)), likely=False):
            builder.ret(failed)

    loop_boxes(builder, begin, end, load_sizes(builder, entry.args[2], launch_ndim), call_nest)
    builder.ret(end)
    library.add_entry_module(module)
