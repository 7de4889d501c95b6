"""The C function around a compiled kernel.

::

    int64_t entry(int64_t begin, int64_t end, const int64_t* dims, const void* args);

It unpacks the 8-byte slots of `args` once and calls the kernel, which LLVM inlines, for each index ``begin <= i < end``
of the row-major index space `dims`. It returns `end`, or the first index at which the kernel failed and the loop
stopped. The loop is fast because:

* pointers, shapes and strides of the arrays are values of the function, loaded before the loop;
* LLVM sees that the index is at least 0, so the wraparound of a negative index in ``x[i]`` folds away;
* in a launch of several dimensions the last one is a plain inner loop, without division;
* a second version, for arguments that allow it, checks neither whether arrays overlap nor where in the array an
  index is (see `loop_versioning`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from llvmlite import ir
from numba.core import types

from anabranch.kernels._cpu.loop_versioning import FEW, PARAMETERS, Better
from anabranch.kernels._cpu.slots import Slots

_I64: Final = ir.IntType(64)
_NO_WRAP: Final = ("nuw", "nsw")


class _Loop(NamedTuple):
    """The loop over the last axis: `halo` at each end is left out of the inner loop; LLVM gets `hints`."""

    halo: int = 0
    hints: Sequence[Any] = ()


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

    def add_loops(builder: Any, parameters: Sequence[Any], known: Mapping[int, Any], how: _Loop) -> None:
        begin, end, dims, slots = parameters
        reader = Slots(context, builder, slots, known)
        arguments = [reader.read(source, target) for source, target in zip(sources, kernel.argtypes[1:], strict=True)]

        def call(index: Sequence[Any], position: Any) -> None:
            first = index[0] if launch_ndim == 1 else context.make_tuple(builder, kernel.argtypes[0], index)
            status, _ = context.call_conv.call_function(
                builder, callee, kernel.restype, kernel.argtypes, [first, *arguments]
            )
            with builder.if_then(status.is_error, likely=False):
                builder.ret(position)

        begin = _at_least_zero(builder, begin)
        with builder.if_then(builder.icmp_signed("<", begin, end)):
            if launch_ndim == 1:
                _loop_inside(builder, begin, end, builder.load(dims), how, lambda i: call([i], i))
            else:
                _loop_rows(builder, begin, end, dims, launch_ndim, how, call)
        builder.ret(end)

    entry = ir.Function(module, ir.FunctionType(_I64, PARAMETERS), symbol)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    better = Better.of(library.compiled(kernel), kernel, launch_ndim, sources)
    if better is not None:
        function = better.declare(module, symbol)
        with builder.if_then(better.holds(context, builder, *entry.args[2:])):
            builder.ret(builder.call(function, [*entry.args, *better.data(builder, entry.args[3])]))
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        add_loops(inner, function.args[:4], better.known(context, inner, function), _Loop(better.interior.halo))
    add_loops(builder, entry.args, {}, _Loop(hints=() if better is None else better.hints_for_others()))
    library.add_entry_module(module)


def _at_least_zero(builder: Any, value: Any) -> Any:
    """Return `value`, which is at least 0, in a form that LLVM recognizes (it would lose an assumption)."""
    return builder.select(builder.icmp_signed("<", value, _I64(0)), _I64(0), value)


def _smaller(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.icmp_signed("<", first, second), first, second)


def _larger(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.icmp_signed(">", first, second), first, second)


def _loop(builder: Any, start: Any, stop: Any, hints: Sequence[Any], body: Any) -> None:
    """Emit ``for (i = start; i < stop; ++i) body(i)`` in a form that LLVM vectorises unless `hints` forbid it."""
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
    latch = builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)
    if hints:
        latch.set_metadata("llvm.loop", _loop_metadata(builder.module, hints))
    builder.position_at_end(after)


def _loop_metadata(module: Any, hints: Sequence[Any]) -> Any:
    """Return a distinct metadata node for a loop; LLVM requires that it is its own first operand."""
    nodes = [module.add_metadata(hint) for hint in hints]
    loop = module.add_metadata([f"loop {len(module.metadata)}", *nodes])
    loop.operands = (loop, *nodes)
    return loop


def _loop_inside(builder: Any, start: Any, stop: Any, size: Any, how: _Loop, body: Any) -> None:
    """Emit the loop with a separate inner loop for the indices far enough from the ends of an axis of `size`."""
    if how.halo == 0:
        _loop(builder, start, stop, how.hints, body)
        return
    halo = _I64(how.halo)
    first = _larger(builder, start, halo)
    last = _smaller(builder, stop, builder.sub(size, halo, flags=("nsw",)))
    if how.halo == 1:
        # At the ends the indices are constants, which folds most of the kernel.
        with builder.if_then(builder.icmp_signed("==", start, _I64(0))):
            body(_I64(0))
        _loop(builder, first, last, how.hints, body)
        at_end = builder.icmp_signed("==", stop, size)
        with builder.if_then(builder.and_(at_end, builder.icmp_signed(">", size, _I64(1)))):
            body(builder.sub(size, _I64(1), flags=_NO_WRAP))
    else:
        _loop(builder, start, _smaller(builder, stop, halo), FEW, body)
        _loop(builder, first, last, how.hints, body)
        _loop(builder, _larger(builder, first, last), stop, FEW, body)


def _loop_rows(builder: Any, begin: Any, end: Any, dims: Any, ndim: int, how: _Loop, call: Any) -> None:
    """Emit the loops over the rows in a non-empty range; the first and last row may be partial."""
    sizes = [builder.load(builder.gep(dims, [_I64(axis)])) for axis in range(ndim)]
    rest = begin
    coordinates: list[Any] = []
    for axis in reversed(range(1, ndim)):
        coordinates.insert(0, builder.urem(rest, sizes[axis]))
        rest = builder.udiv(rest, sizes[axis])
    *outer, row, column = [rest, *coordinates]
    left = builder.sub(end, begin)
    if ndim == 2:
        _loop_plane(builder, row, column, left, end, sizes, how, call)
        return
    before = builder.block
    planes = builder.append_basic_block("planes")
    after = builder.append_basic_block("planes.after")
    builder.branch(planes)
    builder.position_at_end(planes)
    state = [*outer, row, column, left]
    phis = [builder.phi(_I64) for _ in state]
    for phi, value in zip(phis, state, strict=True):
        phi.add_incoming(value, before)
    *outer, row, column, left = phis
    at = [_at_least_zero(builder, coordinate) for coordinate in outer]
    left = _loop_plane(
        builder, row, column, left, end, sizes, how, lambda index, position: call([*at, *index], position)
    )
    following = [*_next_plane(builder, sizes, outer), _I64(0), _I64(0), left]
    for phi, value in zip(phis, following, strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed(">", left, _I64(0)), planes, after)
    builder.position_at_end(after)


def _loop_plane(
    builder: Any, row: Any, column: Any, left: Any, end: Any, sizes: Sequence[Any], how: _Loop, call: Any
) -> Any:
    """Emit the loop over the rows of a plane from that index on; return how many of `left` before `end` remain."""
    before = builder.block
    rows = builder.append_basic_block("rows")
    after = builder.append_basic_block("rows.after")
    builder.branch(rows)
    builder.position_at_end(rows)
    i, start, count = (builder.phi(_I64) for _ in range(3))
    for phi, value in zip((i, start, count), (row, column, left), strict=True):
        phi.add_incoming(value, before)
    stop = _smaller(builder, builder.add(start, count, flags=_NO_WRAP), sizes[-1])
    before_row = builder.sub(builder.sub(end, count), start)
    _loop_inside(builder, start, stop, sizes[-1], how, lambda j: call([i, j], builder.add(before_row, j)))
    remaining = builder.sub(count, builder.sub(stop, start, flags=_NO_WRAP), flags=_NO_WRAP)
    following = builder.add(i, _I64(1), flags=_NO_WRAP)
    for phi, value in zip((i, start, count), (following, _I64(0), remaining), strict=True):
        phi.add_incoming(value, builder.block)
    more = builder.icmp_signed(">", remaining, _I64(0))
    if len(sizes) > 2:
        more = builder.and_(more, builder.icmp_signed("<", following, sizes[-2]))
    builder.cbranch(more, rows, after)
    builder.position_at_end(after)
    return remaining


def _next_plane(builder: Any, sizes: Sequence[Any], outer: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    carry = _I64(1)
    for size, coordinate in zip(reversed(sizes[:-2]), reversed(outer), strict=True):
        value = builder.add(coordinate, carry)
        full = builder.icmp_signed("==", value, size)
        found.insert(0, builder.select(full, _I64(0), value))
        carry = builder.zext(full, _I64)
    return found
