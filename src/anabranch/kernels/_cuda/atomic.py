"""Atomics for numba-cuda-mlir: PTX, written out for every dtype.

There are no instructions for integers of 8 and 16 bits, nor for minimum and maximum of floats. These are loops around a
compare-and-swap of the 32- or 64-bit word.
"""

from __future__ import annotations

from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin, typing_registry
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, llvm, memref, memref_to_llvm_ptr
from numba_cuda_mlir.numba_cuda.core import errors
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from anabranch.kernels._atomic import atomic_add, atomic_max, atomic_min
from anabranch.kernels._atomic_rule import atomic_signature
from anabranch.kernels._cuda.failure import check_indices

_FUNCTIONS: Final = {atomic_add: "add", atomic_min: "min", atomic_max: "max"}

# In all templates $0 is the old value, $1 the element's address, $2 the value; the braces are a scope.

_NATIVE: Final = "atom.global.{operation}.{kind}{bits} $0, [$1], $2;"

_FLOAT_EXTREME: Final = """{{
.reg .pred wins, again, none;
.reg .b{bits} seen, want, found;
.reg .f{bits} have;
ld.volatile.global.b{bits} seen, [$1];
mov.b{bits} want, $2;
retry:
mov.b{bits} have, seen;
setp.{order}.f{bits} wins, $2, have;
setp.nan.f{bits} none, have, have;
or.pred wins, wins, none;
@!wins bra done;
atom.global.cas.b{bits} found, [$1], seen, want;
setp.ne.b{bits} again, found, seen;
mov.b{bits} seen, found;
@again bra retry;
done:
mov.b{bits} $0, seen;
}}"""

_NARROW: Final = """{{
.reg .pred again;
.reg .b64 word;
.reg .b32 at, seen, old, fresh, found;
and.b64 word, $1, -4;
cvt.u32.u64 at, $1;
and.b32 at, at, 3;
shl.b32 at, at, 3;
ld.volatile.global.b32 seen, [word];
retry:
bfe.{kind}32 old, seen, at, {bits};
{operation}.{kind}32 fresh, old, $2;
bfi.b32 fresh, fresh, seen, at, {bits};
atom.global.cas.b32 found, [word], seen, fresh;
setp.ne.b32 again, found, seen;
mov.b32 seen, found;
@again bra retry;
mov.b32 $0, old;
}}"""


def _text(operation: str, dtype: Any) -> tuple[str, str]:
    """Return the PTX of an atomic, and the register constraint of its values."""
    bits = dtype.bitwidth
    if isinstance(dtype, types.Float):
        register = "f" if bits == 32 else "d"
        if operation == "add":
            return _NATIVE.format(operation=operation, kind="f", bits=bits), register
        order = "lt" if operation == "min" else "gt"
        return _FLOAT_EXTREME.format(order=order, bits=bits), register
    kind = "s" if dtype.signed else "u"
    if bits < 32:
        return _NARROW.format(operation=operation, kind=kind, bits=bits), "r"
    # PTX adds signed 64-bit integers as unsigned ones, with the same bits.
    return _NATIVE.format(operation=operation, kind="u" if operation == "add" else kind, bits=bits), (
        "r" if bits == 32 else "l"
    )


def _declare(function: Any, operation: str) -> None:
    name = function.__name__

    class Template(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
        key = function

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            result, *accepted = atomic_signature(name, types, errors, self.context, args, kws)
            return signature(result, *accepted)

    typing_registry.register(Template)
    typing_registry.register_global(function, types.Function(Template))

    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        _lower(operation, builder, target, args)

    lower_builtin(function, types.Array, types.Integer, types.Any)(lower)
    lower_builtin(function, types.Array, types.BaseTuple, types.Any)(lower)


def _lower(operation: str, builder: Any, target: Any, args: Any) -> None:
    array_type, index_type, value_type = (builder.get_numba_type(arg.name) for arg in args)
    array, index, value = (builder.load_var(arg) for arg in args)
    dtype = array_type.dtype
    is_tuple = isinstance(index_type, types.BaseTuple)
    pairs = zip(tuple(index_type), tuple(index), strict=True) if is_tuple else [(index_type, index)]
    indices = [
        _wrapped(builder.lower_cast(kind, types.int64, part), array, axis) for axis, (kind, part) in enumerate(pairs)
    ]
    check_indices(indices, [memref.dim(array, index_of(axis)) for axis in range(len(indices))])
    element = builder.get_mlir_type(dtype)
    pointer = memref_to_llvm_ptr(array, indices, element)
    value = builder.lower_cast(value_type, dtype, value)
    text, register = _text(operation, dtype)
    constraints = f"={register},l,{register},~{{memory}}"
    if isinstance(dtype, types.Integer) and dtype.bitwidth < 32:
        widen = arith.extsi if dtype.signed else arith.extui
        old = llvm.inline_asm(T.i32(), [pointer, widen(T.i32(), value)], text, constraints, has_side_effects=True)
        builder.store_var(target, arith.trunci(element, old))
        return
    old = llvm.inline_asm(element, [pointer, value], text, constraints, has_side_effects=True)
    builder.store_var(target, old)


def _wrapped(index: Any, array: Any, axis: int) -> Any:
    """Return an index into an axis, counted from the end if negative."""
    zero = arith.constant(T.i64(), value=0)
    size = arith.index_cast(T.i64(), memref.dim(array, index_of(axis)))
    negative = arith.cmpi(arith.CmpIPredicate.slt, index, zero)
    return index_of(arith.addi(index, arith.select(negative, size, zero)))


for _function, _operation in _FUNCTIONS.items():
    _declare(_function, _operation)
