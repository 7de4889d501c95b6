"""Comparisons of a compiled kernel's index, and the range of indices where their results are known.

A kernel over a whole array often tests for the interior, as in ``if 0 < j < m - 1``, or uses an index that wraps
around, such as ``u[j - 1]``. In a loop over `j` each of these is a condition for every index. If `j` is far enough from
both ends of its axis, and `m` is the axis' length, all results are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from llvmlite.binding.value import ValueKind

_PREDICATE: Final = re.compile(r" icmp (?:samesign )?(\w+) ")
_SWAPPED: Final = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle"}
# Edges are computed one index at a time, so a wider edge does not pay.
_WIDEST: Final = 16


class Interior(NamedTuple):
    """The range where all comparisons of the last index are known.

    Attributes
    ----------
    halo : int
        Minimum distance of the index from both ends of its axis.
    lengths : frozenset of int
        Slots of the values that it is compared with: each must hold the length of the axis.
    atomic : bool
        Whether the kernel has atomics.
    """

    halo: int
    lengths: frozenset[int]
    atomic: bool


def find_interior(function: Any, index: str, slots: Mapping[str, int]) -> Interior:
    """Find the interior from the comparisons in a compiled kernel.

    Parameters
    ----------
    function
        The kernel, optimized on its own, as a llvmlite reference.
    index : str
        Name of the argument that holds the last index.
    slots : mapping of str to int
        Slots, by name, of arguments that hold a constant int64.
    """
    # Values of the form argument + constant, by name: the argument (the index or one of `slots`) and the constant.
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
    """Return the distance from the ends at which ``index + offset <predicate> other`` is known."""
    name, constant = other
    below = -offset if predicate.startswith("u") else 0  # a negative sum is large if unsigned
    if not name:
        return max(below, constant - offset + (predicate not in ("slt", "sge")))
    return max(below, offset - constant - (predicate in ("sgt", "sle")))
