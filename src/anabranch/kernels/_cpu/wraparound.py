"""Negative indices, which count from the end of an axis, and are rare.

Where the sign of an index is not known, as of one that was read from an array, Numba emits a choice between it and its
sum with the length. As arithmetic that stands between the index and the address of every element; as a branch that is
expected not to be taken it costs less, above all where the memory is far. (Of an index of 64 bits LLVM makes
arithmetic all the same.)
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import instructions

_I32: Final = ir.IntType(32)
# From about 100 to 1 on, LLVM makes a choice a branch.
_RARELY: Final = ("branch_weights", 1, 10_000)


def expect_no_wraparound(module: Any) -> None:
    """Mark the choices between an index and ``index + length`` in a module that Numba emitted."""
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
