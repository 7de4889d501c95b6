"""Detection of kernels whose indices a thread may overlap: short, branchless, with one store that uses every load.

The calls of a kernel for different indices are unordered, so a thread that runs several may load for all of them before
it stores for the first. Within one call the store needs the loaded values and therefore follows the loads. No load
needs order with any store, whatever memory the arrays share. Loads without memory order (`element._unordered_load`)
express this to the assembler, which then keeps several loads in flight.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir.numba_cuda.core import bytecode, interpreter, ir

LONGEST: Final = 120  # statements of a kernel whose calls are unrolled
# Modules whose functions it may call: these compute from numbers alone.
_PURE: Final = ("builtins", "math", "numpy")


def is_straight(function: FunctionType) -> bool:
    """Whether a thread may overlap the indices of the kernel `function`."""
    try:
        identity = bytecode.FunctionIdentity.from_function(function)
        code = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
    except Exception:
        return False  # the compiler reports the error
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
        return False  # reassigned
    used = _used(values, stores[0])
    for name, value in values.items():
        if isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem") and name not in used:
            return False
        if isinstance(value, ir.Expr) and value.op == "call" and not (name in used and _is_pure(values, value.func)):
            return False
    return True


def _used(values: dict[str, Any], store: Any) -> set[str]:
    """Return the variables that a store depends on."""
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
