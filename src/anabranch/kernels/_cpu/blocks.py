"""The C function around the phases of a kernel that runs in blocks.

::

    int64_t entry(int64_t begin, int64_t end, const int64_t* dims, const void* args);

It runs the blocks ``begin <= b < end`` of the row-major space of blocks, and returns `end`, or the first block that
failed, of which it has then reported the index (see ``anabranch/kernel/fault.hpp``). A block runs phase by phase, each
in a loop over the threads of the block: all have come to a barrier before the first one goes on. LLVM inlines the phase
into its loop, which has constant bounds.

All indices of a block have to come to the same barrier. A phase returns the barrier's number, which the loop compares;
where LLVM sees that all are the same, nothing is left of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from anabranch.kernels._cpu.loop_nest import TAIL, load_sizes, loop
from anabranch.kernels._cpu.phases import Phases
from anabranch.kernels._cpu.slots import Slots

_I8: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_BYTES: Final = _I8.as_pointer()
_ALIGNMENT: Final = 64
# A larger state is allocated: threads have stacks of 2 MiB, or less where the user says so.
_MOST_ON_STACK: Final = 64 * 1024
FAILED_INDEX: Final = "anabranch_failed_index"
UNEQUAL: Final = "some indices of its block come to this barrier, and others do not"


def add_block_entry(context: Any, library: Any, phases: Phases, symbol: str, sources: Sequence[Any]) -> None:
    """Add the entry `symbol` to the library that holds the compiled `phases`; `sources`: see `entry.add_entry`."""
    module = library.create_ir_module("anabranch.entry")
    sizes = phases.sizes
    run_block = _add_block(context, module, phases, f"{symbol}.block", sources)
    entry = ir.Function(module, ir.FunctionType(_I64, [_I64, _I64, *TAIL]), symbol)
    begin, end, dims, slots = entry.args
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    extents = load_sizes(builder, dims, len(sizes))
    counts = [builder.udiv(extent, _I64(size)) for extent, size in zip(extents, sizes, strict=True)]
    state, release = _state(builder, phases.state_bytes)

    def run(number: Any) -> None:
        rest, origin = number, list[Any]()
        for axis in reversed(range(len(sizes))):
            along = builder.urem(rest, counts[axis]) if axis else rest
            rest = builder.udiv(rest, counts[axis])
            origin.insert(0, builder.mul(along, _I64(sizes[axis]), flags=("nuw", "nsw")))
        failed = builder.call(run_block, [*origin, slots, state])
        with builder.if_then(builder.icmp_signed(">=", failed, _I64(0)), likely=False):
            position = _I64(0)
            for start, place, extent in zip(origin, _places(builder, failed, sizes), extents, strict=True):
                position = builder.add(builder.mul(position, extent), builder.add(start, place))
            report = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64]), FAILED_INDEX)
            builder.call(report, [position])
            release()
            builder.ret(number)

    with builder.if_then(builder.icmp_signed("<", begin, end)):
        loop(builder, begin, end, (), run)
    release()
    builder.ret(end)
    library.add_entry_module(module)


def _state(builder: Any, size: int) -> tuple[Any, Callable[[], None]]:
    """Return memory for the state of one block after another, and what emits its release."""
    if size <= _MOST_ON_STACK:
        return _memory(builder, size), lambda: None
    allocate = ir.Function(builder.module, ir.FunctionType(_BYTES, [_I64]), "malloc")
    free = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [_BYTES]), "free")
    memory = builder.call(allocate, [_I64(size)])

    def release() -> None:
        builder.call(free, [memory])

    return memory, release


def _places(builder: Any, thread: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the place along each axis of a thread of a block."""
    places: list[Any] = []
    for size in reversed(sizes):
        places.insert(0, builder.urem(thread, _I64(size)))
        thread = builder.udiv(thread, _I64(size))
    return places


def _add_block(context: Any, module: Any, phases: Phases, name: str, sources: Sequence[Any]) -> Any:
    """Add a function that runs a block from its first index on; it returns -1, or the thread that failed."""
    ndim = len(phases.sizes)
    function = ir.Function(module, ir.FunctionType(_I64, [*[_I64] * ndim, TAIL[1], _BYTES]), name)
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    *given, slots, state = function.args
    state.add_attribute("noalias")
    # At least 0 anyway, but in a form that LLVM recognizes.
    origin = [builder.select(builder.icmp_signed(">", start, _I64(0)), start, _I64(0)) for start in given]
    before, after, shared = (
        _memory(builder, size) for size in (phases.uniform_bytes, phases.uniform_bytes, phases.shared_bytes)
    )
    reader = Slots(context, builder, slots, {})
    kernel = phases.description
    targets = kernel.argtypes[-len(sources) :] if sources else ()
    arguments = [reader.read(source, target) for source, target in zip(sources, targets, strict=True)]
    callee = context.declare_function(module, kernel)
    index_type = kernel.argtypes[6 + ndim]
    first = builder.alloca(_I32)
    numbers = [0, *phases.barriers]
    bodies = [function.append_basic_block(f"phase{number}") for number in numbers]
    done = function.append_basic_block("done")
    builder.branch(bodies[0])

    def run_phase(number: int) -> None:
        def run(place: Sequence[Any]) -> None:
            index = [builder.add(start, at, flags=("nuw", "nsw")) for start, at in zip(origin, place, strict=True)]
            whole = index[0] if ndim == 1 else context.make_tuple(builder, index_type, index)
            thread = _I64(0)
            for size, at in zip(phases.sizes, place, strict=True):
                thread = builder.add(builder.mul(thread, _I64(size), flags=("nuw", "nsw")), at, flags=("nuw", "nsw"))
            status, following = context.call_conv.call_function(
                builder,
                callee,
                kernel.restype,
                kernel.argtypes,
                [_I32(number), thread, shared, state, before, after, *place, whole, *arguments],
            )
            with builder.if_then(status.is_error, likely=False):
                builder.ret(thread)
            is_first = builder.icmp_signed("==", thread, _I64(0))
            expected = builder.select(is_first, following, builder.load(first))
            builder.store(expected, first)
            differs = builder.icmp_signed("!=", expected, following)
            with builder.if_then(differs, likely=False):
                _report_unequal(context, builder, phases, expected, following)
                builder.ret(thread)

        _loops(builder, phases.sizes, [], run)
        cgutils.raw_memcpy(builder, before, after, _I64(phases.uniform_bytes), 1, align=_ALIGNMENT)
        switch = builder.switch(builder.load(first), done)
        for following, body in zip(numbers[1:], bodies[1:], strict=True):
            switch.add_case(_I32(following), body)

    for number, body in zip(numbers, bodies, strict=True):
        builder.position_at_end(body)
        run_phase(number)
    builder.position_at_end(done)
    builder.ret(_I64(-1))
    return function


def _memory(builder: Any, size: int) -> Any:
    memory = builder.alloca(_I8, _I64(max(size, 1)))
    memory.align = _ALIGNMENT
    return memory


def _loops(builder: Any, sizes: Sequence[int], outer: list[Any], body: Any) -> None:
    if len(outer) == len(sizes):
        body(outer)
    else:
        size = _I64(sizes[len(outer)])
        loop(builder, _I64(0), size, (), lambda at: _loops(builder, sizes, [*outer, at], body))


def _report_unequal(context: Any, builder: Any, phases: Phases, one: Any, other: Any) -> None:
    """Report that indices came to the barriers `one` and `other`, of which one may be 0, the end of the kernel."""
    reached = builder.select(builder.icmp_signed(">", one, other), one, other)
    spot = _I64(-1)
    for number, line in phases.barriers.items():
        known = _I64(context.build.number_at(line, UNEQUAL))
        spot = builder.select(builder.icmp_signed("==", reached, _I32(number)), known, spot)
    context.call_conv.report(builder, spot)
