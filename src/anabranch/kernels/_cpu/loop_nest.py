"""The loops over a range of a row-major index space: a sequence of boxes, and a nest of loops over each.

The first box of a range, and the last, may be a part of a row, those next to them whole rows of a plane, and so on.
Within a box every loop has constant bounds, so LLVM moves what it derives from them out of the nest. That counts if
rows are short, as in ``dim=(n, 3)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from llvmlite import ir

_I64: Final = ir.IntType(64)
_WORDS: Final = _I64.as_pointer()
# The last two parameters of the entry and the next two of a nest: `dims` and `args`.
TAIL: Final = (_WORDS, _WORDS)
_NO_WRAP: Final = ("nuw", "nsw")
# Disables transformations that do not pay for a loop of few iterations.
NO_UNROLLING: Final = ["llvm.loop.unroll.disable"]
_NO_VECTORS: Final = ["llvm.loop.vectorize.enable", ir.Constant(ir.IntType(1), 0)]
FEW: Final = (NO_UNROLLING, _NO_VECTORS)


class Box(NamedTuple):
    """The indices ``starts[k] <= i[k] < stops[k]``, at least one."""

    starts: Sequence[Any]
    stops: Sequence[Any]


class Inner(NamedTuple):
    """The loop over the last axis.

    Attributes
    ----------
    halo : int or None
        Minimum distance from both ends of the axis at which the kernel's comparisons are known: indices closer to an
        end are left out of the inner loop. With None, for kernels without them, LLVM knows that all rows of a box have
        the same bounds.
    hints
        For LLVM.
    """

    halo: int | None = None
    hints: Sequence[Any] = ()


class Nest(NamedTuple):
    """A function over a box, which returns -1, or the position at which the kernel failed.

    It is not inlined. LLVM derives fewer facts from arguments than from the arithmetic that computes them, and so
    compiles faster; and it would lose what it is told about `pointers`.

    Attributes
    ----------
    function, builder
        The function, and where its code is added.
    starts, stops
        The box, as arguments of the function.
    sizes
        Of each axis of the index space.
    slots
        The entry's `args`.
    pointers
        Further arguments: addresses of memory that is not accessed through any other.
    """

    function: Any
    builder: Any
    starts: Sequence[Any]
    stops: Sequence[Any]
    sizes: Sequence[Any]
    slots: Any
    pointers: Sequence[Any]

    @classmethod
    def declare(cls, module: Any, name: str, ndim: int, pointers: int = 0) -> Nest:
        """Declare the function; its arguments are starts, stops, the entry's `dims` and `args`, and `pointers`."""
        own = [*[_I64] * (2 * ndim), *TAIL]
        function = ir.Function(module, ir.FunctionType(_I64, own + [_WORDS] * pointers), name)
        function.attributes.add("noinline")
        for argument in function.args[len(own) :]:
            argument.add_attribute("noalias")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        dims, slots, *rest = function.args[2 * ndim :]
        sizes = load_sizes(builder, dims, ndim)
        # At least 0 anyway, but in a form that LLVM recognizes (it would lose an assumption).
        starts = [_larger(builder, start, _I64(0)) for start in function.args[:ndim]]
        return cls(function, builder, starts, function.args[ndim : 2 * ndim], sizes, slots, rest)

    def add_loops(self, inner: Inner, body: Callable[[Sequence[Any], Any], None]) -> None:
        """Complete the function: a loop per axis around ``body(index, position)``, the position row-major."""
        builder = self.builder

        def add(outer: list[Any], row: Any) -> None:
            axis = len(outer)
            start, stop, size = self.starts[axis], self.stops[axis], self.sizes[axis]
            first = builder.mul(row, size)
            if axis == len(self.sizes) - 1:
                _loop_inside(builder, start, stop, size, inner, lambda i: body([*outer, i], builder.add(first, i)))
            else:
                loop(builder, start, stop, (), lambda i: add([*outer, i], builder.add(first, i)))

        add([], _I64(0))
        builder.ret(_I64(-1))


def load_sizes(builder: Any, dims: Any, ndim: int) -> list[Any]:
    """Load the size of each axis of the index space."""
    return [builder.load(builder.gep(dims, [_I64(axis)])) for axis in range(ndim)]


def loop_boxes(builder: Any, begin: Any, end: Any, sizes: Sequence[Any], body: Callable[[Box], None]) -> None:
    """Emit ``for box in boxes of begin <= i < end: body(box)``; `begin` is at least 0."""
    before = builder.block
    boxes = builder.append_basic_block("boxes")
    after = builder.append_basic_block("boxes.after")
    builder.cbranch(builder.icmp_signed("<", begin, end), boxes, after)
    builder.position_at_end(boxes)
    position = builder.phi(_I64)
    position.add_incoming(begin, before)
    rest = _larger(builder, position, _I64(0))
    if len(sizes) == 1:
        body(Box([rest], [end]))
        following = end
    else:
        starts: list[Any] = []
        for size in reversed(sizes[1:]):
            starts.insert(0, builder.urem(rest, size))
            rest = builder.udiv(rest, size)
        starts.insert(0, rest)
        stops, count = _largest(builder, starts, builder.sub(end, position, flags=_NO_WRAP), sizes)
        body(Box(starts, stops))
        following = builder.add(position, count, flags=_NO_WRAP)
    position.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), boxes, after)
    builder.position_at_end(after)


def _largest(builder: Any, starts: Sequence[Any], left: Any, sizes: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return where the largest box of at most `left` consecutive indices from `starts` on ends, and their number.

    It extends along one axis and over the whole of all later ones. The last axis always qualifies; an earlier one
    does if its later ones start at 0 and `left` reaches over the whole of them.
    """
    count, step = _I64(1), _I64(1)
    whole = ir.Constant(ir.IntType(1), 1)
    stops: list[Any] = []
    for axis in reversed(range(len(sizes))):
        fits = builder.and_(whole, builder.icmp_signed(">=", left, step))
        room = builder.sub(sizes[axis], starts[axis], flags=_NO_WRAP)
        length = builder.select(fits, _smaller(builder, builder.udiv(left, step), room), _I64(1))
        count = builder.select(fits, builder.mul(length, step, flags=_NO_WRAP), count)
        stops.insert(0, builder.add(starts[axis], length, flags=_NO_WRAP))
        whole = builder.and_(whole, builder.icmp_signed("==", starts[axis], _I64(0)))
        step = builder.mul(step, sizes[axis], flags=_NO_WRAP)
    return stops, count


def _smaller(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.icmp_signed("<", first, second), first, second)


def _larger(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.icmp_signed(">", first, second), first, second)


def _opaque(builder: Any, value: Any) -> Any:
    """Return `value` as one that LLVM knows nothing about, not even that it is the same each time."""
    return builder.asm(ir.FunctionType(_I64, [_I64]), "", "=r,0", [value], side_effect=True)


def loop(builder: Any, start: Any, stop: Any, hints: Sequence[Any], body: Callable[[Any], None]) -> None:
    """Emit ``for (i = start; i < stop; ++i) body(i)``, which has an iteration; LLVM vectorises it if `hints` allow."""
    before = builder.block
    loop = builder.append_basic_block("loop")
    after = builder.append_basic_block("after")
    builder.branch(loop)
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


def _loop_inside(builder: Any, start: Any, stop: Any, size: Any, inner: Inner, body: Callable[[Any], None]) -> None:
    """Emit the loop with a separate inner loop for the indices far enough from the ends of an axis of `size`."""
    if inner.halo is None:
        loop(builder, start, stop, inner.hints, body)
        return

    def loop_if_any(first: Any, last: Any, hints: Sequence[Any]) -> None:
        with builder.if_then(builder.icmp_signed("<", first, last)):
            loop(builder, first, last, hints, body)

    # With bounds that are the same for each row, LLVM would clone the nest for each outcome of the conditions below.
    start = _larger(builder, _opaque(builder, start), _I64(0))
    stop = _smaller(builder, _opaque(builder, stop), size)
    halo = _I64(inner.halo)
    first = _larger(builder, start, halo)
    last = _smaller(builder, stop, builder.sub(size, halo, flags=("nsw",)))
    if inner.halo == 0:
        loop_if_any(start, stop, inner.hints)
    elif inner.halo == 1:
        # At the ends the indices are constants, which folds most of the kernel.
        with builder.if_then(builder.icmp_signed("==", start, _I64(0))):
            body(_I64(0))
        loop_if_any(first, last, inner.hints)
        at_end = builder.icmp_signed("==", stop, size)
        with builder.if_then(builder.and_(at_end, builder.icmp_signed(">", size, _I64(1)))):
            body(builder.sub(size, _I64(1), flags=_NO_WRAP))
    else:
        loop_if_any(start, _smaller(builder, stop, halo), FEW)
        loop_if_any(first, last, inner.hints)
        loop_if_any(_larger(builder, first, last), stop, FEW)
