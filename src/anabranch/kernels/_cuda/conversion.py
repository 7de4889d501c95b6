"""Conversions of numbers in kernels on CUDA where the compiler has none, or where their result is undefined.

It does not convert sizes of arrays to complex numbers. A float that does not fit in an integer of 8 or 16 bits becomes
an int32 first, whose lowest bits are kept, as on a CPU.
"""

from __future__ import annotations

from typing import Any, Final

from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.lowering.cuda import T, arith, ir

from anabranch.kernels._cuda.failure import is_active

_NARROW: Final = (8, 16)
_convert: Final = lowering_utilities.unverified_convert.dispatch(ir.Value)


@lowering_utilities.unverified_convert.register(ir.Value)  # type: ignore[untyped-decorator]
def _convert_value(value: Any, target_type: Any, **options: Any) -> Any:
    if isinstance(value.type, ir.IndexType) and isinstance(target_type, ir.ComplexType):
        value = lowering_utilities.convert(value, T.i64())
    is_narrow = isinstance(target_type, ir.IntegerType) and target_type.width in _NARROW
    if is_narrow and isinstance(value.type, ir.FloatType) and is_active():
        return arith.trunci(target_type, arith.fptosi(T.i32(), value))
    return _convert(value, target_type, **options)
