"""Sums, differences and products of integers, which wrap around in a kernel as NumPy's do.

Numba tells LLVM that those of signed integers never overflow (``nsw``). LLVM relies on that: it takes ``i * K`` of an
index for positive, and ``x + 1 > x`` for true. The promise is kept where it holds, since wraparound tests of indices
such as ``u[i - 1, 2 * j]`` fold by it, and withdrawn where values may be too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from llvmlite import ir
from llvmlite.ir import instructions

# The most indices of a launch along an axis, and elements of an array, for which a product with another is considered.
# Larger numbers exist, but their products do not overflow either where they are positions in memory.
_MOST: Final = 2**31
# The greatest position in memory, and the start of a loop over positions and its step.
_FAR: Final = 2**40
_STEP: Final = 2**16
# Longer chains of operations count as unknown.
_DEEPEST: Final = 64


class Range(NamedTuple):
    """The least and the greatest value that an integer may have.

    `sources` are the indices of the launch, sizes and variables of loops that it was computed from with numbers that
    are no larger: such values are positions. It is empty if there is other data in it. An argument of a helper may be
    a position, or anything else: it is taken for one unless it is multiplied by a number, as hashes are, and
    `multiplied` says whether it may be.
    """

    low: int
    high: int
    sources: frozenset[int] = frozenset()
    multiplied: bool = True

    def fits(self, kind: Any) -> bool:
        """Return whether an integer of an LLVM type has all values of the range."""
        return self.low >= _bounds(kind).low and self.high <= _bounds(kind).high

    @property
    def most(self) -> int:
        """The greatest absolute value."""
        return max(-self.low, self.high)

    def with_sources(self, one: Range, other: Range) -> Range:
        """Return this range of a result, with the sources of its operands."""
        both = all(operand.sources or operand.most <= _MOST for operand in (one, other))
        sources = one.sources | other.sources if both else frozenset()
        return self._replace(sources=sources, multiplied=one.multiplied and other.multiplied)


def allow_wraparound(module: Any, kernel: str, index: str) -> None:
    """Withdraw ``nsw`` from operations of a module that Numba emitted, unless they cannot overflow.

    `kernel` and `index` are the names of the kernel function and of its first parameter.
    """
    for function in module.functions:
        sums = [
            instruction
            for block in function.blocks
            for instruction in block.instructions
            if instruction.opname in _RESULTS and "nsw" in instruction.flags
        ]
        if not sums:
            continue
        own = f"{len(kernel)}{kernel}B" in function.name
        ranges = _Ranges(function, f"arg.{index}" if own else None)
        for instruction in sums:
            if not ranges.of_result(instruction).fits(instruction.type):
                instruction.flags.remove("nsw")


def _bounds(kind: Any) -> Range:
    return Range(-(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1)


_ANY: Final = Range(-(2**64), 2**64)


def _sum(one: Range, other: Range) -> Range:
    return Range(one.low + other.low, one.high + other.high).with_sources(one, other)


def _difference(one: Range, other: Range) -> Range:
    return Range(one.low - other.high, one.high - other.low).with_sources(one, other)


def _product(one: Range, other: Range) -> Range:
    most = max(one.most, other.most)
    if one.sources and other.sources and one.sources.isdisjoint(other.sources) and most <= _FAR:
        # A position in memory, such as `row * width`, is as small as others, however many axes it is computed from.
        return Range(-most, most).with_sources(one, other)
    if not one.multiplied or not other.multiplied:
        return _ANY
    products = [first * second for first in (one.low, one.high) for second in (other.low, other.high)]
    return Range(min(products), max(products)).with_sources(one, other)


_RESULTS: Final = {"add": _sum, "sub": _difference, "mul": _product}


class _Ranges:
    """The least and the greatest value, as signed numbers, that integers of a function may have."""

    def __init__(self, function: Any, index: str | None) -> None:
        self._known: dict[int, Range] = {}
        for argument in function.args:
            if not isinstance(argument.type, ir.IntType):
                continue
            is_index = index is not None and (argument.name == index or argument.name.startswith(f"{index}."))
            found = _position(argument, 0 if is_index else -_MOST)._replace(multiplied=index is not None)
            self._known[id(argument)] = found if found.fits(argument.type) else _bounds(argument.type)
        arguments = set(self._known)
        # What is stored to each variable of which only loads and stores take the address.
        self._stored: dict[int, list[Any]] = {}
        escaped = set[int]()
        for block in function.blocks:
            for instruction in block.instructions:
                for place, operand in enumerate(instruction.operands):
                    if not isinstance(operand, instructions.AllocaInstr):
                        continue
                    if isinstance(instruction, instructions.StoreInstr) and place == 1:
                        self._stored.setdefault(id(operand), []).append(instruction.operands[0])
                    elif not isinstance(instruction, instructions.LoadInstr):
                        escaped.add(id(operand))
        for variable in escaped:
            self._stored.pop(variable, None)
        # Whether all loops are over ranges from bounded starts.
        self._loops = True
        if not all(map(self._is_bounded, _stores(function))):
            self._loops = False
            self._known = {key: known for key, known in self._known.items() if key in arguments}

    def _is_bounded(self, store: Any) -> bool:
        value, pointer = store.operands
        if _field(pointer, _PAIR) == 0:
            return _field_read(value) == 0
        field = _field(pointer, _RANGE)
        if field not in (0, 2):
            return True
        most = _FAR if field == 0 else _STEP
        return self._of(value, 0).most <= most

    def of_result(self, instruction: Any) -> Range:
        """Return the range of a sum, a difference or a product without wraparound."""
        return _RESULTS[instruction.opname](*(self._of(operand, 0) for operand in instruction.operands))

    def _of(self, value: Any, depth: int) -> Range:
        found = self._known.get(id(value))
        if found is None:
            whole = _bounds(value.type)
            self._known[id(value)] = whole  # meanwhile, in case that the value depends on itself
            found = (None if depth > _DEEPEST else self._computed(value, depth + 1)) or whole
            self._known[id(value)] = found = found if found.fits(value.type) else whole
        return found

    def _computed(self, value: Any, depth: int) -> Range | None:
        if isinstance(value, ir.Constant):
            return Range(value.constant, value.constant) if isinstance(value.constant, int) else None
        if isinstance(value, instructions.LoadInstr):
            if "range" in value.metadata:  # of a size
                return _position(value, 0)
            if self._loops and _field(value.operands[0], _PAIR) == 0:
                return _position(value, -_MOST)
            if _field_read(value) == 3:  # how many iterations of a range are left
                return Range(0, _bounds(value.type).high)
            return self._union(self._stored.get(id(value.operands[0])), depth)
        if isinstance(value, instructions.SelectInstr):
            # Of a quotient, instead of the one that overflows.
            return self._union([other for other in value.operands[1:] if not _is_least(other)], depth)
        if isinstance(value, instructions.ExtractValue):
            return self._union(_part(value), depth)
        if isinstance(value, instructions.CastInstr) and value.opname in ("sext", "zext", "trunc"):
            (operand,) = value.operands
            found = self._of(operand, depth)
            return Range(0, 2**operand.type.width - 1) if value.opname == "zext" and found.low < 0 else found
        if isinstance(value, instructions.Instruction) and value.opname in _RESULTS:
            return _RESULTS[value.opname](*(self._of(operand, depth) for operand in value.operands))
        if isinstance(value, instructions.Instruction) and value.opname in ("sdiv", "srem"):
            one, other = (self._of(operand, depth) for operand in value.operands)
            most = one.most if value.opname == "sdiv" else min(one.most, other.most)
            # A remainder is a position if it is one by a size, whatever it is of.
            return Range(-most, most).with_sources(other if value.opname == "srem" and other.sources else one, other)
        return None

    def _union(self, values: Any, depth: int) -> Range | None:
        if not values or not all(isinstance(value.type, ir.IntType) for value in values):
            return None
        found, *others = (self._of(value, depth) for value in values)
        for other in others:
            found = Range(min(found.low, other.low), max(found.high, other.high)).with_sources(found, other)
        return found


def _is_least(value: Any) -> bool:
    return (
        isinstance(value, ir.Constant)
        and isinstance(value.type, ir.IntType)
        and value.constant == _bounds(value.type).low
    )


def _position(value: Any, low: int) -> Range:
    return Range(low, _MOST, frozenset({id(value)}))


def _part(value: Any) -> list[Any] | None:
    """Return the element that an instruction takes out of a tuple, if it was put in before."""
    aggregate = value.operands[0]
    while isinstance(aggregate, instructions.InsertValue):
        inside, element = aggregate.operands
        if tuple(aggregate.indices) == tuple(value.indices):
            return [element]
        aggregate = inside
    return None


# Structures of Numba's by the types of their fields. A range has start, stop and step; its iterator pointers to the
# current number and to how many are left, before and after stop and step; what an iterator returns is a value, and
# whether there was one.
_RANGE: Final = (ir.IntType, ir.IntType, ir.IntType)
_ITERATOR: Final = (ir.PointerType, ir.IntType, ir.IntType, ir.PointerType)
_PAIR: Final = (ir.IntType, ir.IntType)


def _field(pointer: Any, kinds: tuple[type, ...]) -> int | None:
    """Return which field of such a structure a pointer is to."""
    if not isinstance(pointer, instructions.GEPInstr):
        return None
    kind = getattr(pointer.pointer.type, "pointee", None)
    if not isinstance(kind, ir.LiteralStructType) or len(kind.elements) != len(kinds):
        return None
    if not all(isinstance(element, wanted) for element, wanted in zip(kind.elements, kinds, strict=True)):
        return None
    last = pointer.indices[-1]
    return last.constant if isinstance(last, ir.Constant) else None


def _stores(function: Any) -> Iterator[Any]:
    for block in function.blocks:
        for instruction in block.instructions:
            if isinstance(instruction, instructions.StoreInstr):
                yield instruction


def _field_read(value: Any) -> int | None:
    """Return through which field, a pointer, of an iterator over a range a value was read."""
    if not isinstance(value, instructions.LoadInstr) or not isinstance(value.operands[0], instructions.LoadInstr):
        return None
    return _field(value.operands[0].operands[0], _ITERATOR)
