"""Sums, products, means, variances, minima and maxima of arrays in kernels on CUDA, one element after the other.

The compiler allocates memory for them, and returns sums of integers in the type of the elements. The types here are
those of the CPU: sums and products of integers have 64 bits, and so have all means, of complex numbers each part. A NaN
is both minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir.extending import lower_builtin, lowering_registry, typing_registry
from numba_cuda_mlir.lowering import math as lowering_math
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, memref
from numba_cuda_mlir.lowering_utilities import scf
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.typing.templates import AttributeTemplate, bound_function, signature

from anabranch.kernels._cuda.failure import if_, is_active, report
from anabranch.kernels._cuda.refusal import RefusedError

_complex: Final = lowering_math.complex_dialect
_WIDENED: Final = frozenset(("sum", "prod"))
_OF_COMPLEX: Final = frozenset(("sum", "prod", "mean", "var", "std"))


class _Reduction(NamedTuple):
    """How the compiler lowers it for others, and the combination of a type and two values of it."""

    original: Callable[..., None]
    combine: Callable[[Any, Any, Any], Any]


def _operation(of_floats: Any, of_integers: Any, of_complex: Any) -> Callable[[Any, Any, Any], Any]:
    def combine(kind: Any, total: Any, value: Any) -> Any:
        if isinstance(kind, types.Complex):
            return of_complex(total, value)
        return (of_floats if isinstance(kind, types.Float) else of_integers)(total, value)

    return combine


def _extreme(of_floats: Any, of_signed: Any, of_unsigned: Any) -> Callable[[Any, Any, Any], Any]:
    def combine(kind: Any, best: Any, value: Any) -> Any:
        if isinstance(kind, types.Float):
            is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
            is_better = arith.ori(arith.cmpf(of_floats, value, best), is_nan)
        else:
            is_better = arith.cmpi(of_signed if getattr(kind, "signed", False) else of_unsigned, value, best)
        return arith.select(is_better, value, best)

    return combine


_LESS: Final = (arith.CmpFPredicate.OLT, arith.CmpIPredicate.slt, arith.CmpIPredicate.ult)
_GREATER: Final = (arith.CmpFPredicate.OGT, arith.CmpIPredicate.sgt, arith.CmpIPredicate.ugt)
_REDUCTIONS: Final = {
    "sum": _Reduction(lowering_numpy.np_sum_cg, _operation(arith.addf, arith.addi, _complex.add)),
    "prod": _Reduction(lowering_numpy.np_prod_cg, _operation(arith.mulf, arith.muli, _complex.mul)),
    "min": _Reduction(lowering_numpy.np_min_cg, _extreme(*_LESS)),
    "max": _Reduction(lowering_numpy.np_max_cg, _extreme(*_GREATER)),
}
_FUNCTIONS: Final = {getattr(np, name): name for name in _REDUCTIONS}
_METHODS: Final = {f"Array.{name}": name for name in _REDUCTIONS}


def widened(function: Any, found: Any, args: Sequence[Any]) -> Any:
    """Return the signature of a call as on a CPU, where `found` is the compiler's."""
    key = getattr(function, "typing_key", None)
    if found is not None and key is np.mean:
        return found.replace(return_type=_type_of_mean(args[0]))
    name = _METHODS.get(key or "") or _FUNCTIONS.get(function)
    if found is None or name not in _WIDENED:
        return found
    kind = found.return_type
    if isinstance(kind, types.Boolean) or (isinstance(kind, types.Integer) and kind.signed):
        return found.replace(return_type=types.int64)
    return found.replace(return_type=types.uint64) if isinstance(kind, types.Integer) else found


def each_element(array: Any, visit: Callable[[list[Any]], None], before: tuple[Any, ...] = ()) -> None:
    """Generate loops over the elements of an array in the order of C."""
    if len(before) == array.type.rank:
        visit(list(before))
        return
    for index in scf.for_(index_of(0), memref.dim(array, index_of(len(before))), index_of(1)):
        each_element(array, visit, (*before, index))
        scf.yield_([])


def _size(array: Any) -> Any:
    size = index_of(1)
    for axis in range(array.type.rank):
        size = arith.muli(size, memref.dim(array, index_of(axis)))
    return size


def _check(name: str, kind: Any, count: int) -> None:
    """Raise `RefusedError` for what CPUs refuse, too, or for an axis."""
    if kind.dtype == types.float16:
        raise RefusedError(f"a kernel has no {name} of arrays of float16: write the loop, as in for v in x: total += v")
    if isinstance(kind.dtype, types.Complex) and name not in _OF_COMPLEX:
        raise RefusedError("numba-cuda-mlir has no such function of complex numbers on the GPU")
    if count != 1:
        raise RefusedError(f"{name} in a kernel takes the array alone: write the loop over an axis")


def _reduced(builder: Any, variable: Any, name: str, result: Any) -> Any:
    """Return the value of a reduction of an array, which is computed in the type `result`."""
    combine = _REDUCTIONS[name].combine
    kind = builder.get_numba_type(variable.name)
    array = builder.load_var(variable)
    with builder.alloca_insertion_point():
        total = memref.alloca(T.memref(1, builder.get_mlir_type(result)), [], [])

    def read(at: list[Any]) -> Any:
        return builder.lower_cast(kind.dtype, result, lowering_utilities.array_element_value_load(kind, array, at))

    if name in _WIDENED:
        first = lowering_utilities._zero_value_for_type(builder.get_mlir_type(result))
        if name == "prod":
            first = builder.lower_cast(types.int64, result, arith.constant(T.i64(), value=1))
    else:
        with if_(arith.cmpi(arith.CmpIPredicate.eq, _size(array), index_of(0))):
            report(f"ValueError: zero-size array to reduction operation {name}imum which has no identity")
        first = read([index_of(0)] * array.type.rank)
    memref.store(first, total, [index_of(0)])

    def visit(at: list[Any]) -> None:
        so_far = memref.load(total, [index_of(0)])
        memref.store(combine(result, so_far, read(at)), total, [index_of(0)])

    each_element(array, visit)
    return memref.load(total, [index_of(0)])


def _reduce(name: str) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not is_active():
            _REDUCTIONS[name].original(builder, target, args, kwargs)
            return
        _check(name, builder.get_numba_type(args[0].name), len(args) + len(kwargs))
        builder.store_var(target, _reduced(builder, args[0], name, builder.get_numba_type(target.name)))

    return lower


def _type_of_mean(array: Any) -> Any:
    return types.complex128 if isinstance(array.dtype, types.Complex) else types.float64


@typing_registry.register_attr
class _Methods(AttributeTemplate):  # type: ignore[misc]
    """The types of methods of arrays that the compiler has not."""

    key = types.Array

    @bound_function("Array.mean")  # type: ignore[untyped-decorator]
    def resolve_mean(self, array: Any, args: Any, kwargs: Any) -> Any:
        return None if args or kwargs else signature(_type_of_mean(array))

    @bound_function("Array.var")  # type: ignore[untyped-decorator]
    def resolve_var(self, array: Any, args: Any, kwargs: Any) -> Any:
        return None if args or kwargs else signature(types.float64)

    @bound_function("Array.std")  # type: ignore[untyped-decorator]
    def resolve_std(self, array: Any, args: Any, kwargs: Any) -> Any:
        return None if args or kwargs else signature(types.float64)


def _count(array: Any) -> Any:
    return lowering_utilities.convert(_size(array), T.f64())


def _mean_of(builder: Any, variable: Any) -> Any:
    """Return the mean of an array, of complex numbers each part."""
    kind = builder.get_numba_type(variable.name)
    # In the type of the elements, as on a CPU, unless they are integers.
    summed = kind.dtype if isinstance(kind.dtype, types.Float | types.Complex) else types.float64
    total = builder.lower_cast(summed, _type_of_mean(kind), _reduced(builder, variable, "sum", summed))
    count = _count(builder.load_var(variable))
    if isinstance(kind.dtype, types.Complex):
        return _complex.create_(total.type, *(arith.divf(part(total), count) for part in (_complex.re, _complex.im)))
    return arith.divf(total, count)


def _variance_of(builder: Any, variable: Any) -> Any:
    """Return the mean of the squared distances from the mean."""
    kind = builder.get_numba_type(variable.name)
    mean_kind, mean = _type_of_mean(kind), _mean_of(builder, variable)
    array = builder.load_var(variable)
    with builder.alloca_insertion_point():
        total = memref.alloca(T.memref(1, T.f64()), [], [])
    memref.store(arith.constant(T.f64(), value=0.0), total, [index_of(0)])

    def visit(at: list[Any]) -> None:
        element = lowering_utilities.array_element_value_load(kind, array, at)
        value = builder.lower_cast(kind.dtype, mean_kind, element)
        if isinstance(mean_kind, types.Complex):
            distances = [arith.subf(part(value), part(mean)) for part in (_complex.re, _complex.im)]
        else:
            distances = [arith.subf(value, mean)]
        so_far = memref.load(total, [index_of(0)])
        for distance in distances:
            so_far = arith.addf(so_far, arith.mulf(distance, distance))
        memref.store(so_far, total, [index_of(0)])

    each_element(array, visit)
    return arith.divf(memref.load(total, [index_of(0)]), _count(array))


def _statistic(name: str, of: Callable[[Any, Any], Any]) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not is_active():
            raise NotImplementedError(f"{name} of an array")
        _check(name, builder.get_numba_type(args[0].name), len(args) + len(kwargs))
        builder.store_var(target, of(builder, args[0]))

    return lower


def _register(name: str, lower: Callable[..., None]) -> None:
    lower_builtin(getattr(np, name), types.Array)(lower)

    @lowering_registry.lower_getattr(types.Array, name)  # type: ignore[untyped-decorator]
    def method(context: Any, builder: Any, target: Any, variable: Any) -> None:
        builder.store_var(target, lowering_numpy.DeferredMethodCall(variable, lower))


for _name in _REDUCTIONS:
    _register(_name, _reduce(_name))
_register("mean", _statistic("mean", _mean_of))
_register("var", _statistic("var", _variance_of))
_register(
    "std", _statistic("std", lambda builder, variable: lowering_math.math_dialect.sqrt(_variance_of(builder, variable)))
)
