"""Attributes of arrays and numbers that the compiler types but cannot generate in kernels on CUDA."""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir.extending import lower_builtin, lowering_registry
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, ir, memref
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.np.numpy_support import as_dtype

_lower_getattr = lowering_registry.lower_getattr


@_lower_getattr(types.Array, "T")  # type: ignore[untyped-decorator]
def _transposed(context: Any, builder: Any, target: Any, variable: Any) -> None:
    array = builder.load_var(variable)
    rank = array.type.rank
    if rank < 2:
        builder.store_var(target, array)
        return
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    kind = ir.MemRefType.get(
        shape=[ir.ShapedType.get_dynamic_size()] * rank,
        element_type=array.type.element_type,
        layout=ir.StridedLayoutAttr.get(offset=dynamic, strides=[dynamic] * rank),
        memory_space=array.type.memory_space,
    )
    builder.store_var(target, memref.transpose(kind, array, ir.AffineMap.get_permutation(list(reversed(range(rank))))))


@_lower_getattr(types.Array, "ndim")  # type: ignore[untyped-decorator]
def _ndim(context: Any, builder: Any, target: Any, variable: Any) -> None:
    kind = builder.get_mlir_type(builder.get_numba_type(target.name))
    builder.store_var(target, arith.constant(kind, value=builder.get_numba_type(variable.name).ndim))


@_lower_getattr(types.Array, "itemsize")  # type: ignore[untyped-decorator]
def _itemsize(context: Any, builder: Any, target: Any, variable: Any) -> None:
    kind = builder.get_mlir_type(builder.get_numba_type(target.name))
    builder.store_var(target, arith.constant(kind, value=_bytes_of(builder, variable)))


@_lower_getattr(types.Array, "nbytes")  # type: ignore[untyped-decorator]
def _nbytes(context: Any, builder: Any, target: Any, variable: Any) -> None:
    array = builder.load_var(variable)
    size = arith.constant(T.i64(), value=_bytes_of(builder, variable))
    for axis in range(array.type.rank):
        size = arith.muli(size, arith.index_cast(T.i64(), memref.dim(array, index_of(axis))))
    builder.store_var(target, size)


def _bytes_of(builder: Any, variable: Any) -> int:
    return int(as_dtype(builder.get_numba_type(variable.name).dtype).itemsize)


@_lower_getattr(types.Number, "real")  # type: ignore[untyped-decorator]
def _real(context: Any, builder: Any, target: Any, variable: Any) -> None:
    value = builder.load_var(variable)
    is_complex = isinstance(builder.get_numba_type(variable.name), types.Complex)
    builder.store_var(target, lowering_math.complex_dialect.re(value) if is_complex else value)


@_lower_getattr(types.Number, "imag")  # type: ignore[untyped-decorator]
def _imag(context: Any, builder: Any, target: Any, variable: Any) -> None:
    value = builder.load_var(variable)
    kind = builder.get_numba_type(variable.name)
    if isinstance(kind, types.Complex):
        builder.store_var(target, lowering_math.complex_dialect.im(value))
    else:
        builder.store_var(target, arith.constant(value.type, value=0.0 if isinstance(kind, types.Float) else 0))


def _answer(value: bool) -> Any:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        builder.store_var(target, arith.constant(ir.IntegerType.get_signless(1), value=value))

    return lower


for _operator in (operator.is_, operator.is_not):
    for _operands in ((types.Array, types.NoneType), (types.NoneType, types.Array)):
        lower_builtin(_operator, *_operands)(_answer(_operator is operator.is_not))
