"""Kernels whose indices a thread may overlap: short, without a branch, with one store, which uses all that they load.

The calls of a kernel for different indices run in no order, so a thread that runs several may load for all of them
before it stores for the first. Within one call the loads come before the store anyway, since the store needs their
values; so no load has to be kept in order with any store, whatever arrays share memory. The assembler is told by loads
that bypass the order of memory (`element._unordered_load`), and then has several loads under way at a time.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir.numba_cuda.core import bytecode, interpreter, ir

LONGEST: Final = 120  # statements of a kernel that is repeated in the code
# What may be called: functions that compute from numbers alone.
_PURE: Final = ("builtins", "math", "numpy")


def is_straight(function: FunctionType) -> bool:
    """Whether the indices of a thread may be overlapped in the kernel `function`."""
    try:
        identity = bytecode.FunctionIdentity.from_function(function)
        code = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
    except Exception:
        return False  # what is wrong with it is for the compiler to say
    if len(code.blocks) != 1:
        return False
    (block,) = code.blocks.values()
    statements = [each for each in block.body if not isinstance(each, ir.Del)]
    stores = [each for each in statements if isinstance(each, ir.SetItem | ir.StaticSetItem)]
    known = ir.Assign | ir.SetItem | ir.StaticSetItem | ir.Return
    if len(stores) != 1 or len(statements) > LONGEST or not all(isinstance(each, known) for each in statements):
        return False
    values = {each.target.name: each.value for each in statements if isinstance(each, ir.Assign)}
    if len(values) != sum(isinstance(each, ir.Assign) for each in statements):
        return False  # a variable that changes
    used = _used(values, stores[0])
    for name, value in values.items():
        if isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem") and name not in used:
            return False
        if isinstance(value, ir.Expr) and value.op == "call" and not (name in used and _is_pure(values, value.func)):
            return False
    return True


def _used(values: dict[str, Any], store: Any) -> set[str]:
    """Return the variables that a store follows from."""
    used: set[str] = set()
    waiting = [variable.name for variable in store.list_vars()]
    while waiting:
        name = waiting.pop()
        if name in used or name not in values:
            continue
        used.add(name)
        value = values[name]
        if isinstance(value, ir.Var):
            waiting.append(value.name)
        elif isinstance(value, ir.Expr):
            waiting += [variable.name for variable in value.list_vars()]
    return used


def _is_pure(values: dict[str, Any], variable: Any) -> bool:
    value = values.get(variable.name)
    if isinstance(value, ir.Global | ir.FreeVar):
        return _is_library_function(value.value)
    if isinstance(value, ir.Expr) and value.op == "getattr":
        module = values.get(value.value.name)
        return isinstance(module, ir.Global | ir.FreeVar) and _is_library_function(
            getattr(module.value, value.attr, None)
        )
    return False


def _is_library_function(value: Any) -> bool:
    return callable(value) and (getattr(value, "__module__", None) or type(value).__module__) in _PURE
