"""Sums, differences and products of integers, which wrap around in a kernel as NumPy's do.

Numba tells LLVM that those of signed integers never overflow (``nsw``). LLVM relies on that: it takes ``i * K`` of an
index for positive, and ``x + 1 > x`` for true. The promise is kept where it holds, since wraparound tests of indices
such as ``u[i - 1, 2 * j]`` fold by it, and withdrawn where values may be too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import instructions

# No launch has as many indices, and no array as many elements along an axis.
_MOST: Final = 2**48
# What the variable of a loop over a range reaches from a start within `_START` on, in loops that end before years.
_REACHED: Final = 2**58
_START: Final = 2**58 + _MOST
_STEP: Final = 2**16
# Longer chains of operations count as unknown.
_DEEPEST: Final = 64

Range = tuple[int, int]


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
            low, high = ranges.of_result(instruction)
            least, greatest = _bounds(instruction.type)
            if low < least or high > greatest:
                instruction.flags.remove("nsw")


def _bounds(kind: Any) -> Range:
    return -(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1


def _sum(one: Range, other: Range) -> Range:
    return one[0] + other[0], one[1] + other[1]


def _difference(one: Range, other: Range) -> Range:
    return one[0] - other[1], one[1] - other[0]


def _product(one: Range, other: Range) -> Range:
    products = [first * second for first in one for second in other]
    return min(products), max(products)


_RESULTS: Final = {"add": _sum, "sub": _difference, "mul": _product}


class _Ranges:
    """The least and the greatest value, as signed numbers, that integers of a function may have."""

    def __init__(self, function: Any, index: str | None) -> None:
        self._known: dict[int, Range] = {}
        for argument in function.args:
            if index is not None and (argument.name == index or argument.name.startswith(f"{index}.")):
                self._known[id(argument)] = 0, _MOST
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
        most = _START if field == 0 else _STEP
        low, high = self._of(value, 0)
        return -most <= low and high <= most

    def of_result(self, instruction: Any) -> Range:
        """Return the range of a sum, a difference or a product without wraparound."""
        return _RESULTS[instruction.opname](*(self._of(operand, 0) for operand in instruction.operands))

    def _of(self, value: Any, depth: int) -> Range:
        found = self._known.get(id(value))
        if found is None:
            whole = _bounds(value.type)
            self._known[id(value)] = whole  # meanwhile, in case that the value depends on itself
            low, high = whole if depth > _DEEPEST else self._computed(value, depth + 1) or whole
            found = whole if low < whole[0] or high > whole[1] else (low, high)
            self._known[id(value)] = found
        return found

    def _computed(self, value: Any, depth: int) -> Range | None:
        if isinstance(value, ir.Constant):
            return (value.constant, value.constant) if isinstance(value.constant, int) else None
        if isinstance(value, instructions.LoadInstr):
            if "range" in value.metadata:  # of a size
                return 0, _MOST
            if self._loops and _field(value.operands[0], _PAIR) == 0:
                return -_REACHED, _REACHED
            if _field_read(value) == 3:  # how many iterations of a range are left
                return 0, _bounds(value.type)[1]
            return self._union(self._stored.get(id(value.operands[0])), depth)
        if isinstance(value, instructions.SelectInstr):
            return self._union(value.operands[1:], depth)
        if isinstance(value, instructions.ExtractValue):
            return self._union(_part(value), depth)
        if isinstance(value, instructions.CastInstr) and value.opname in ("sext", "zext", "trunc"):
            (operand,) = value.operands
            low, high = self._of(operand, depth)
            return (0, 2**operand.type.width - 1) if value.opname == "zext" and low < 0 else (low, high)
        if isinstance(value, instructions.Instruction) and value.opname in _RESULTS:
            return _RESULTS[value.opname](*(self._of(operand, depth) for operand in value.operands))
        return None

    def _union(self, values: Any, depth: int) -> Range | None:
        if not values or not all(isinstance(value.type, ir.IntType) for value in values):
            return None
        ranges = [self._of(value, depth) for value in values]
        return min(low for low, _ in ranges), max(high for _, high in ranges)


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
