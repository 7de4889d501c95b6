"""Sizes of arrays as complex numbers in kernels on CUDA, to which the compiler does not convert them."""

from __future__ import annotations

from typing import Any, Final

from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.lowering.cuda import T, ir

_convert: Final = lowering_utilities.unverified_convert.dispatch(ir.Value)


@lowering_utilities.unverified_convert.register(ir.Value)  # type: ignore[untyped-decorator]
def _convert_size(value: Any, target_type: Any, **options: Any) -> Any:
    if isinstance(value.type, ir.IndexType) and isinstance(target_type, ir.ComplexType):
        value = lowering_utilities.convert(value, T.i64())
    return _convert(value, target_type, **options)
