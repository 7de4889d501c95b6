"""What a compiled kernel compares its index with, and so where its conditions are known before the loop.

A kernel over a whole array often has a test for the inner part, such as ``if 0 < j < m - 1``, or an index that wraps
around, such as ``u[j - 1]``. In a loop over `j` each is a condition of every single index. Where `j` is far enough from
both ends of its axis, and `m` is the length of that axis, all of them are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from llvmlite.binding.value import ValueKind

_PREDICATE: Final = re.compile(r" icmp (?:samesign )?(\w+) ")
_SWAPPED: Final = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle"}
# Edges are computed one index at a time, so an inner part that starts later than this is not worth it.
_WIDEST: Final = 16


class Interior(NamedTuple):
    """Where all comparisons of the last index are known.

    Attributes
    ----------
    halo : int
        How far the index is at least from both ends of its axis.
    lengths : frozenset of int
        Slots of what it is compared with: each must hold the length of the axis.
    atomic : bool
        Whether the kernel has atomics.
    """

    halo: int
    lengths: frozenset[int]
    atomic: bool


def find_interior(function: Any, index: str, slots: Mapping[str, int]) -> Interior:
    """Look at the comparisons in a compiled kernel.

    Parameters
    ----------
    function
        The kernel, as llvmlite's reference to it, optimized on its own.
    index : str
        Name of the argument that is the last index.
    slots : mapping of str to int
        Slots of the arguments that hold an int64 which does not change, by name.
    """
    # What is the index, or one of these arguments, plus a constant: by name, the argument and the constant.
    terms = {name: (name, 0) for name in (index, *slots)}
    halo, lengths, atomic = 0, set[int](), False
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.opcode not in ("add", "icmp"):
                atomic |= instruction.opcode in ("atomicrmw", "cmpxchg")
                continue
            left, right = (_term(operand, terms) for operand in instruction.operands)
            if left is None or right is None:
                continue
            if instruction.opcode == "add":
                if right[0] == "":
                    terms[instruction.name] = (left[0], left[1] + right[1])
                continue
            predicate = _PREDICATE.search(str(instruction))
            if predicate is None or (left[0] == index) == (right[0] == index):
                continue
            if left[0] == index:
                needed = _needed(predicate[1], left[1], right)
            else:
                needed = _needed(_SWAPPED.get(predicate[1], predicate[1]), right[1], left)
            other = right[0] if left[0] == index else left[0]
            if needed <= _WIDEST:
                halo = max(halo, needed)
                if other:
                    lengths.add(slots[other])
    return Interior(halo, frozenset(lengths), atomic)


def _term(operand: Any, terms: Mapping[str, tuple[str, int]]) -> tuple[str, int] | None:
    if operand.value_kind == ValueKind.constant_int:
        return "", operand.get_constant_value(signed_int=True)
    return terms.get(operand.name)


def _needed(predicate: str, offset: int, other: tuple[str, int]) -> int:
    """Return how far from the ends an index must be for ``index + offset <predicate> other`` to be known."""
    name, constant = other
    below = -offset if predicate.startswith("u") else 0  # a negative sum is a large number without sign
    if not name:
        return max(below, constant - offset + (predicate not in ("slt", "sge")))
    return max(below, offset - constant - (predicate in ("sgt", "sle")))
