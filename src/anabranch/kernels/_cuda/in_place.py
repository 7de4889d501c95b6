"""Changes of arrays in place in kernels on CUDA, as in ``row *= 2`` and ``row += other``, element by element.

The compiler computes the elements and stores none. The rules are NumPy's: a result is cast to the array's dtype, and
refused where that would be of a lower kind; the other operand is repeated along axes that it lacks or that have the
size 1. Where NumPy would copy an array of one dimension first, since it shares elements with the other, there is a
ValueError.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.descriptor import mlir_target
from numba_cuda_mlir.lowering.cuda import arith, index_of, memref
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.ir import Expr
from numba_cuda_mlir.numba_cuda.np.numpy_support import as_dtype
from numba_cuda_mlir.numba_cuda.typing.templates import signature

from anabranch.kernels._compile_error import CANNOT_HOLD
from anabranch.kernels._cuda.failure import if_, lowers_statements, report
from anabranch.kernels._cuda.indexing import store
from anabranch.kernels._cuda.overlap import overlap_of
from anabranch.kernels._cuda.reduction import each_element
from anabranch.kernels._cuda.refusal import RefusedError
from anabranch.kernels._cuda.variable import assigned, declared
from anabranch.kernels._failure import NO_BROADCAST, SHARED_ELEMENTS

_UFUNCS: Final = {
    operator.iadd: np.add,
    operator.isub: np.subtract,
    operator.imul: np.multiply,
    operator.itruediv: np.true_divide,
    operator.ifloordiv: np.floor_divide,
    operator.imod: np.remainder,
    operator.ipow: np.power,
    operator.iand: np.bitwise_and,
    operator.ior: np.bitwise_or,
    operator.ixor: np.bitwise_xor,
    operator.ilshift: np.left_shift,
    operator.irshift: np.right_shift,
}


def in_place(function: Any, args: Any) -> Any:
    """Return the signature of an operator that changes an array, whose result is the array; None for all else."""
    if function not in _UFUNCS or not isinstance(args[0], types.Array):
        return None
    other = args[1]
    if isinstance(other, types.Array):
        return signature(args[0], *args) if other.ndim <= args[0].ndim else None
    return signature(args[0], *args) if isinstance(other, types.Number | types.Boolean) else None


@lowers_statements
def _change_in_place(builder: Any, inst: Any) -> bool:
    """Generate a statement that changes an array in place; return False for any other."""
    change = getattr(inst, "value", None)
    if not (isinstance(change, Expr) and change.op == "inplace_binop" and change.fn in _UFUNCS):
        return False
    kind = builder.get_numba_type(change.lhs.name)
    if not isinstance(kind, types.Array):
        return False
    if not kind.mutable:
        raise RefusedError("the array is declared ab.In, and so cannot be changed")
    _check(_UFUNCS[change.fn], kind, builder.get_numba_type(change.rhs.name))
    array = builder.load_var(change.lhs)
    other = Operand(builder, inst.target, change.rhs, array)
    if other.array is not None and array.type.rank == other.array.type.rank == 1:
        with if_(overlap_of(array, other.array).shares):
            report(f"ValueError: {SHARED_ELEMENTS}")
    element = _read(kind)
    result = mlir_target.typing_context.resolve_function_type(change.immutable_fn, (element, other.kind), {})

    def change_element(at: list[Any]) -> None:
        value = lowering_utilities.array_element_value_load(kind, array, at)
        before = assigned(builder, inst.target, "before", element, builder.lower_cast(kind.dtype, element, value))
        after = declared(builder, inst.target, "after", result.return_type)
        builder.lower_binop_expr_assign(after, change.immutable_fn, before, other.at(at))
        store(builder, kind, array, at, after)

    each_element(array, change_element)
    builder.store_var(inst.target, array)
    return True


def _check(ufunc: np.ufunc, array: Any, other: Any) -> None:
    """Raise `RefusedError` for types of an array and of the other operand with which NumPy changes no array."""
    if isinstance(other, types.Array) and other.ndim > array.ndim:
        raise RefusedError(f"a {array.ndim}-d array cannot be changed by a {other.ndim}-d one")
    held = as_dtype(array.dtype)
    given = as_dtype(other.dtype if isinstance(other, types.Array) else types.unliteral(other))
    try:
        ufunc.resolve_dtypes((held, given, held))
    except TypeError:  # there is none of these dtypes, or it cannot be cast
        raise RefusedError(CANNOT_HOLD) from None


def _read(kind: Any) -> Any:
    """Return the type in which elements of an array are read."""
    return types.float32 if kind.dtype == types.float16 else kind.dtype


class Operand:
    """The other operand: a number, or an array that is repeated along the axes of `array`."""

    def __init__(self, builder: Any, target: Any, variable: Any, array: Any) -> None:
        kind = builder.get_numba_type(variable.name)
        self._builder, self._target, self._variable = builder, target, variable
        self.array: Any = None
        if not isinstance(kind, types.Array):
            self.kind = kind
            return
        self.kind, self._dtype = _read(kind), kind.dtype
        self._type = kind
        self.array = builder.load_var(variable)
        self._skipped = array.type.rank - self.array.type.rank
        self._is_one = []
        for axis in range(self.array.type.rank):
            size = memref.dim(self.array, index_of(axis))
            whole = memref.dim(array, index_of(axis + self._skipped))
            self._is_one.append(arith.cmpi(arith.CmpIPredicate.eq, size, index_of(1)))
            is_other = arith.cmpi(arith.CmpIPredicate.ne, size, whole)
            with if_(arith.andi(is_other, arith.cmpi(arith.CmpIPredicate.ne, size, index_of(1)))):
                report(f"ValueError: {NO_BROADCAST}")

    def at(self, indices: list[Any]) -> Any:
        """Return a variable with the operand of the element there."""
        if self.array is None:
            return self._variable
        own = zip(self._is_one, indices[self._skipped :], strict=True)
        places = [arith.select(is_one, index_of(0), index) for is_one, index in own]
        value = lowering_utilities.array_element_value_load(self._type, self.array, places)
        value = self._builder.lower_cast(self._dtype, self.kind, value)
        return assigned(self._builder, self._target, "operand", self.kind, value)
