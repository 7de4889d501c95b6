"""Kernels that use their index for nothing but to subscript arrays by the whole of it, as in ``y[i, j] = 2 * x[i, j]``.

If the arrays are contiguous and have the shape of the launch, the index space can be walked along in one loop, whose
rows are as long as can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numba.core import ir, types

# The role of a variable that is the whole index; a part of the index has the number of its axis as its role.
_WHOLE: Final = -1


def arrays_at_index(lower: Any) -> frozenset[int]:
    """Return the kernel's arrays that it subscripts by its index, as positions among all of its parameters.

    Parameters
    ----------
    lower
        Numba's lowering of the kernel, whose first parameter is the index.

    Returns
    -------
    frozenset of int
        Empty if the index is used for anything else, or is a single number.
    """
    kind = lower.fndesc.argtypes[0]
    if not isinstance(kind, types.BaseTuple):
        return frozenset()
    statements = [statement for block in lower.func_ir.blocks.values() for statement in block.body]
    values = _assigned_once(statements)
    roles = _roles(values, len(kind))
    found = set()
    for statement in statements:
        used = [variable for variable in _read(statement) if variable.name in roles]
        if not used or _is_renamed(statement, roles):
            continue
        position = _subscripted(lower, statement, roles, values) if len(used) == 1 else None
        if position is None:
            return frozenset()
        found.add(position)
    return frozenset(found)


def _assigned_once(statements: Iterable[Any]) -> dict[str, Any]:
    """Return the value of each variable that is assigned in one place."""
    values: dict[str, Any] = {}
    for statement in statements:
        if isinstance(statement, ir.Assign):
            name = statement.target.name
            values[name] = None if name in values else statement.value
    return {name: value for name, value in values.items() if value is not None}


def _read(statement: Any) -> list[Any]:
    """Return the variables that a statement reads, each as often as it does."""
    if isinstance(statement, ir.Del):
        return []
    value = statement.value if isinstance(statement, ir.Assign) else statement
    return [value] if isinstance(value, ir.Var) else value.list_vars() if hasattr(value, "list_vars") else []


def _roles(values: Mapping[str, Any], ndim: int) -> dict[str, int]:
    """Return the role of each variable that is the index, or a part of it."""
    roles: dict[str, int] = {}
    count = -1
    while count != len(roles):
        count = len(roles)
        for name, value in values.items():
            role = _role_of(value, roles, ndim)
            if role is not None:
                roles[name] = role
    return roles


def _role_of(value: Any, roles: Mapping[str, int], ndim: int) -> int | None:
    if isinstance(value, ir.Arg):
        return _WHOLE if value.index == 0 else None
    if isinstance(value, ir.Var):
        return roles.get(value.name)
    if not isinstance(value, ir.Expr):
        return None
    if value.op == "build_tuple":
        parts = [roles.get(item.name) for item in value.items]
        return _WHOLE if parts == list(range(ndim)) else None
    if value.op not in ("exhaust_iter", "static_getitem") or roles.get(value.value.name) != _WHOLE:
        return None
    if value.op == "exhaust_iter":
        return _WHOLE
    return value.index % ndim if isinstance(value.index, int) else None


def _is_renamed(statement: Any, roles: Mapping[str, int]) -> bool:
    """Whether a statement that reads the index does no more than to give it, or a part of it, a name."""
    return isinstance(statement, ir.Assign) and statement.target.name in roles


def _subscripted(lower: Any, statement: Any, roles: Mapping[str, int], values: Mapping[str, Any]) -> int | None:
    """Return the parameter that a statement subscripts by the index; None if it is another use of the index."""
    if isinstance(statement, ir.SetItem):
        array, index = statement.target, statement.index
    elif isinstance(statement, ir.Assign) and getattr(statement.value, "op", "") == "getitem":
        array, index = statement.value.value, statement.value.index
    else:
        return None
    kind = lower.typeof(array.name)
    if roles.get(index.name) != _WHOLE or not isinstance(kind, types.Array):
        return None
    found = array
    while isinstance(found, ir.Var):
        found = values.get(found.name)
    is_parameter = isinstance(found, ir.Arg) and kind.ndim == len(lower.fndesc.argtypes[0]) and kind.layout == "C"
    return found.index if is_parameter else None
