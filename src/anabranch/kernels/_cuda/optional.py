"""Values that may be None, such as ``best = None`` before a loop, in kernels on CUDA.

The compiler compares them with None, and nothing else. Here an operator or a function takes the value, and reports an
error where that is None; as a condition, None is false.
"""

from __future__ import annotations

import operator
from copy import copy
from typing import Any, Final

from numba_cuda_mlir.lowering.cuda import T, arith, llvm
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.ir import Expr, SetItem, StaticSetItem
from numba_cuda_mlir.numba_cuda.typing.templates import signature

from anabranch.kernels._cuda.failure import if_, lowers_statements, report
from anabranch.kernels._cuda.variable import assigned, declared

_IDENTITIES: Final = (operator.is_, operator.is_not)


def type_of_truth(function: Any, args: Any) -> Any:
    """Return the signature of `bool` of a value that may be None; None for any other call."""
    if function is bool and len(args) == 1 and isinstance(args[0], types.Optional):
        return signature(types.boolean, *args)
    return None


@lowers_statements
def _lower_statement(builder: Any, inst: Any) -> bool:
    """Generate a statement that uses such a value; return False for any other."""
    expr = getattr(inst, "value", None)
    if isinstance(inst, SetItem | StaticSetItem) and _may_be_none(builder, expr):
        given = copy(inst)
        given.value = _value(builder, expr, expr)
        builder.lower_setitem(given)
        return True
    if not isinstance(expr, Expr):
        return False
    if expr.op in ("binop", "inplace_binop") and expr.fn not in _IDENTITIES:
        operands = (expr.lhs, expr.rhs)
        if not any(_may_be_none(builder, operand) for operand in operands):
            return False
        left, right = (_value(builder, inst.target, operand) for operand in operands)
        function = expr.fn if expr.op == "binop" else expr.immutable_fn
        builder.lower_binop_expr_assign(inst.target, function, left, right)
        return True
    if expr.op == "call" and expr.vararg is None:
        return _lower_call(builder, inst, expr)
    return False


def _lower_call(builder: Any, inst: Any, call: Any) -> bool:
    if not any(_may_be_none(builder, argument) for argument in call.args):
        return False
    function = getattr(builder.get_numba_type(call.func.name), "typing_key", None)
    if function is bool:
        _lower_truth(builder, inst, call)
        return True
    taken = builder.fndesc.calltypes[call].args
    if any(isinstance(kind, types.Optional) for kind in taken):  # a helper that knows of None
        return False
    arguments = [_value(builder, inst.target, argument) for argument in call.args]
    builder.lower_call_expr_assign(inst.target, call.func, arguments, call.kws)
    return True


def _lower_truth(builder: Any, inst: Any, call: Any) -> None:
    (argument,) = call.args
    kind = builder.get_numba_type(argument.name)
    value = builder.load_var(argument)
    inner = assigned(builder, inst.target, "value", kind.type, builder.lower_cast(kind, kind.type, value))
    truth = declared(builder, inst.target, "truth", types.boolean)
    if isinstance(kind.type, types.Boolean):
        truth = inner
    else:
        builder.lower_call_expr_assign(truth, call.func, [inner], [])
    builder.store_var(inst.target, arith.andi(_is_given(value), builder.load_var(truth)))


def _may_be_none(builder: Any, variable: Any) -> bool:
    return isinstance(builder.get_numba_type(variable.name), types.Optional)


def _is_given(value: Any) -> Any:
    return llvm.extractvalue(T.bool(), value, [1])


def _value(builder: Any, owner: Any, variable: Any) -> Any:
    """Return a variable with the value of one that may be None, which is an error then; any other as it is."""
    kind = builder.get_numba_type(variable.name)
    if not isinstance(kind, types.Optional):
        return variable
    value = builder.load_var(variable)
    with if_(arith.xori(_is_given(value), arith.constant(T.bool(), value=True))):
        report(f"TypeError: expected {kind.type}, got None")
    return assigned(builder, owner, "value", kind.type, builder.lower_cast(kind, kind.type, value))
