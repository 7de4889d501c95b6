"""Variables of a kernel that have the same value for all indices of a block.

They depend on nothing but constants and the arguments, and are assigned where all indices of a block come: not within
an ``if`` or a loop whose condition may differ between them. A loop around a barrier usually runs over such variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from numba.core import ir, types
from numba.core.analysis import compute_cfg_from_blocks

from anabranch.kernels._block import block, shared
from anabranch.kernels._block_rule import called, outside_value

_OF_OPERANDS: Final = frozenset(
    {
        "binop",
        "build_tuple",
        "cast",
        "exhaust_iter",
        "getattr",
        "getiter",
        "inplace_binop",
        "iternext",
        "pair_first",
        "pair_second",
        "unary",
    }
)
_PURE: Final = (abs, bool, float, int, len, max, min, range)


def uniform_variables(func_ir: Any, typeof: Callable[[str], Any]) -> set[str]:
    """Return the names of such variables; `typeof` returns the Numba type of a variable."""
    assigned = {name for body in func_ir.blocks.values() for name, _ in _assignments(body)}
    differing: set[str] = set()
    graph = compute_cfg_from_blocks(func_ir.blocks)
    count = -1
    while count != len(differing):
        count = len(differing)
        for body in func_ir.blocks.values():
            for name, value in _assignments(body):
                if name not in differing and _differs(func_ir, typeof, value, differing):
                    differing.add(name)
        for label, body in func_ir.blocks.items():
            branch = body.body[-1]
            if isinstance(branch, ir.Branch) and branch.cond.name in differing:
                for dependent in _dependent(graph, label):
                    differing.update(_changed(func_ir, func_ir.blocks[dependent]))
    return assigned - differing


def _changed(func_ir: Any, body: Any) -> Iterator[str]:
    """Yield the variables that differ if a block of code does not run for all indices alike.

    Besides those that it assigns, these are all that live across a barrier in it, since indices may come to it in
    different turns of a loop.
    """
    for name, value in _assignments(body):
        yield name
        if isinstance(value, ir.Yield):
            yield from func_ir.generator_info.yield_points[value.index].live_vars


def _assignments(body: Any) -> Iterator[tuple[str, Any]]:
    for statement in body.body:
        if isinstance(statement, ir.Assign):
            yield statement.target.name, statement.value


def _differs(func_ir: Any, typeof: Callable[[str], Any], value: Any, differing: set[str]) -> bool:
    if isinstance(value, ir.Arg):
        return bool(value.index == 0)
    if isinstance(value, ir.Var):
        return value.name in differing
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "call":
        function = called(func_ir, ir, value)
        if function is shared:
            return False
        if function is block or not any(outside_value(func_ir, ir, value.func) is each for each in _PURE):
            return True
    elif value.op == "getiter":
        if not isinstance(typeof(value.value.name), types.RangeType):
            return True
    elif value.op in ("getitem", "static_getitem"):
        # Memory may change between the accesses of two indices.
        if not isinstance(typeof(value.value.name), types.BaseTuple):
            return True
    elif value.op not in _OF_OPERANDS:
        return True
    return any(variable.name in differing for variable in value.list_vars())


def _dependent(graph: Any, label: int) -> set[int]:
    """Return the blocks of code whose execution the branch at the end of the block `label` decides."""
    common = graph.post_dominators()
    # The nearest block that all ways from the branch come to; the virtual end is none.
    behind = [each for each in common[label] if each != label and each in graph.nodes()]
    stop = max(behind, key=lambda each: len(common[each]), default=None)
    found: set[int] = set()
    waiting = [successor for successor, _ in graph.successors(label)]
    while waiting:
        each = waiting.pop()
        if each in found or each == stop:
            continue
        found.add(each)
        waiting += [successor for successor, _ in graph.successors(each)]
    return found
