"""Detection of kernels that move across the rows of an array, which decides the shape of blocks.

Threads adjacent along a launch's last axis should access adjacent memory. If one array has that axis last and another
has it elsewhere, as in a transposition, no shape of blocks is best for both, and narrow blocks lose least.
"""

from __future__ import annotations

from typing import Any

from numba_cuda_mlir.numba_cuda.core import ir


def moves_across_rows(func_ir: Any, launch_ndim: int) -> bool:
    """Return whether an access uses the launch's last axis other than alone in its last index."""
    if launch_ndim < 2:
        return False
    for block in func_ir.blocks.values():
        for inst in block.body:
            index = _index_of(inst)
            items = _items(func_ir, index) if index is not None else []
            axes = [_axis(func_ir, item, launch_ndim) for item in items]
            if launch_ndim - 1 in axes[:-1] and axes[-1] != launch_ndim - 1:
                return True
    return False


def _index_of(inst: Any) -> Any:
    if isinstance(inst, ir.SetItem):
        return inst.index
    value = getattr(inst, "value", None)
    if isinstance(value, ir.Expr) and value.op == "getitem":
        return value.index
    if isinstance(value, ir.Expr) and value.op == "call" and len(value.args) > 1:  # an atomic
        return value.args[1]
    return None


def _definition(func_ir: Any, variable: Any) -> Any:
    """Return the definition of a variable, following aliases."""
    seen: set[str] = set()
    while isinstance(variable, ir.Var) and variable.name not in seen:
        seen.add(variable.name)
        try:
            variable = func_ir.get_definition(variable)
        except KeyError:  # assigned in several places
            return None
        if isinstance(variable, ir.Expr) and variable.op in ("cast", "exhaust_iter"):
            variable = variable.value
    return variable


def _items(func_ir: Any, index: Any) -> list[Any]:
    found = _definition(func_ir, index)
    return list(found.items) if isinstance(found, ir.Expr) and found.op == "build_tuple" else []


def _axis(func_ir: Any, item: Any, launch_ndim: int) -> int | None:
    """Return the launch axis that an index follows, if it is a single axis."""
    found = _definition(func_ir, item)
    if not isinstance(found, ir.Expr):
        return None
    if found.op == "binop" and found.fn.__name__ in ("add", "sub"):
        axis = _axis(func_ir, found.lhs, launch_ndim)
        return _axis(func_ir, found.rhs, launch_ndim) if axis is None else axis
    if found.op == "static_getitem" and isinstance(found.index, int):
        whole = _definition(func_ir, found.value)
        # The kernel's index; the wrapper builds a tuple for it.
        if isinstance(whole, ir.Arg) or len(_items(func_ir, found.value)) == launch_ndim:
            return found.index % launch_ndim
    return None
