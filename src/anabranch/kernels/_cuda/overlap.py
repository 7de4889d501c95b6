"""Whether two arrays of one dimension share elements, in kernels on CUDA; see `kernels._cpu.overlap`."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, ir, llvm, memref
from numba_cuda_mlir.lowering_utilities import scf


class Overlap(NamedTuple):
    """How elements are shared, as `kernels._cpu.overlap` has it."""

    shares: Any
    is_shifted: Any
    is_ahead: Any


def _compare(predicate: str, one: Any, other: Any) -> Any:
    return arith.cmpi(getattr(arith.CmpIPredicate, predicate), one, other)


def _row(array: Any, size: Any) -> tuple[Any, Any, Any, Any]:
    """Return the lowest and the highest address of an element, the first one's, and the distance of neighbours."""
    zero, one = _constants(0, 1)
    start = llvm.ptrtoint(T.i64(), lowering_utilities.memref_data_pointer(array))
    item = arith.constant(T.i64(), value=lowering_utilities.get_type_size_bytes(array.type.element_type))
    stride = arith.muli(arith.index_cast(T.i64(), memref.extract_strided_metadata(array)[3]), item)
    stride = arith.select(_compare("eq", _size(array), one), zero, stride)
    last = arith.addi(start, arith.muli(arith.subi(size, one), stride))
    descends = _compare("slt", stride, zero)
    return arith.select(descends, last, start), arith.select(descends, start, last), start, stride


def _size(array: Any) -> Any:
    return arith.index_cast(T.i64(), memref.dim(array, index_of(0)))


def _constants(*values: int) -> list[Any]:
    return [arith.constant(T.i64(), value=value) for value in values]


def overlap_of(changed: Any, other: Any) -> Overlap:
    """Return how an array that changes shares elements with another of the same size, or of size 1."""
    zero, one = _constants(0, 1)
    size = _size(changed)
    low, high, start, stride = _row(changed, size)
    other_low, other_high, other_start, other_stride = _row(other, size)
    meets = arith.andi(_compare("ule", low, other_high), _compare("ule", other_low, high))
    is_shifted = _compare("eq", stride, other_stride)
    distance = arith.subi(start, other_start)
    found = scf.IfOp(arith.andi(meets, _compare("sgt", size, one)), results_=[T.bool()], has_else=True)
    with ir.InsertionPoint(found.then_block):
        step = arith.select(_compare("eq", stride, zero), one, stride)
        is_between = _compare("ne", arith.remsi(distance, step), zero)
        apart = arith.andi(is_shifted, arith.ori(is_between, _compare("eq", distance, zero)))
        scf.yield_([arith.xori(apart, arith.constant(T.bool(), value=True))])
    with ir.InsertionPoint(found.else_block):
        scf.yield_([arith.constant(T.bool(), value=False)])
    before, behind = _compare("slt", distance, zero), _compare("sgt", distance, zero)
    return Overlap(found.results[0], is_shifted, arith.select(_compare("sgt", stride, zero), behind, before))
