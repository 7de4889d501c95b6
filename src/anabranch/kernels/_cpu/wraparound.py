"""Branches for negative indices, which count from the end of an axis and are rare.

For an index of unknown sign, such as one read from an array, Numba emits a select between the index and its sum with
the length. As arithmetic it delays the address of every element. A branch that is predicted not taken costs less, above
all for distant memory. (For 64-bit indices LLVM emits arithmetic all the same.)
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import instructions

_I32: Final = ir.IntType(32)
# From a ratio of about 100 on, LLVM turns a select into a branch.
_RARELY: Final = ("branch_weights", 1, 10_000)


def expect_no_wraparound(module: Any) -> None:
    """Mark the selects between an index and ``index + length`` in a module that Numba emitted as unlikely."""
    rarely = None
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, instructions.SelectInstr) and _wraps(*instruction.operands):
                    if rarely is None:
                        name, *weights = _RARELY
                        rarely = module.add_metadata([name, *map(_I32, weights)])
                    instruction.set_metadata("prof", rarely)


def _wraps(condition: Any, wrapped: Any, index: Any) -> bool:
    return (
        isinstance(condition, instructions.ICMPInstr)
        and condition.op == "slt"
        and condition.operands[0] is index
        and getattr(condition.operands[1], "constant", None) == 0
        and getattr(wrapped, "opname", None) == "add"
        and index in wrapped.operands
    )
