"""Atomics for numba-cuda-mlir: PTX, written out for every dtype.

There are no instructions for elements of 8 and 16 bits, but for the sum of float16, nor for minimum and maximum of
floats. These are loops around a compare-and-swap of the 32- or 64-bit word.
"""

from __future__ import annotations

from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin, typing_registry
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, llvm, memref, memref_to_llvm_ptr
from numba_cuda_mlir.numba_cuda.core import errors
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from anabranch.kernels._atomic import atomic_add, atomic_cas, atomic_exchange, atomic_max, atomic_min
from anabranch.kernels._atomic_rule import PARAMETERS, atomic_signature
from anabranch.kernels._cuda.blocks import has_blocks
from anabranch.kernels._cuda.element import narrow, narrow_pointer
from anabranch.kernels._cuda.failure import check_indices

_FUNCTIONS: Final = {
    atomic_add: "add",
    atomic_min: "min",
    atomic_max: "max",
    atomic_exchange: "exch",
    atomic_cas: "cas",
}

# In all templates $0 is the old value, $1 the element's address, $2 the value (of a compare-and-swap the one expected,
# and $3 the new one); the braces are a scope.

_NATIVE: Final = "atom.global.{operation}.{kind}{bits} $0, [$1], $2;"

_HALF_SUM: Final = "atom.global.add.noftz.f16 $0, [$1], $2;"
_SWAP: Final = "atom.global.cas.b{bits} $0, [$1], $2, $3;"

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

# Lines of the template below. The value expected is widened as the old one is.
_COMPUTE: Final = "{operation}.{kind}32 fresh, old, $2;"
_EXCHANGE: Final = "mov.b32 fresh, $2;"
_EXPECT: Final = "setp.ne.b32 differs, old, $2;\n@differs bra done;\nmov.b32 fresh, $3;"

_NARROW: Final = """{{
.reg .pred again, differs;
.reg .b64 word;
.reg .b32 at, seen, old, fresh, found;
and.b64 word, $1, -4;
cvt.u32.u64 at, $1;
and.b32 at, at, 3;
shl.b32 at, at, 3;
ld.volatile.global.b32 seen, [word];
retry:
bfe.{kind}32 old, seen, at, {bits};
{update}
bfi.b32 fresh, fresh, seen, at, {bits};
atom.global.cas.b32 found, [word], seen, fresh;
setp.ne.b32 again, found, seen;
mov.b32 seen, found;
@again bra retry;
done:
mov.b32 $0, old;
}}"""


def _text(operation: str, dtype: Any) -> tuple[str, str]:
    """Return the PTX of an atomic, and the register constraint of its values."""
    bits = dtype.bitwidth
    floating = isinstance(dtype, types.Float)
    kind = "u" if floating or not dtype.signed else "s"
    if bits == 16 and floating and operation == "add":
        return _HALF_SUM, "h"
    if bits < 32:
        update = {"exch": _EXCHANGE, "cas": _EXPECT}.get(operation, _COMPUTE).format(operation=operation, kind=kind)
        return _NARROW.format(update=update, kind=kind, bits=bits), "r"
    register = {(False, 32): "r", (False, 64): "l", (True, 32): "f", (True, 64): "d"}[floating, bits]
    if operation == "cas":
        return _SWAP.format(bits=bits), register
    if operation == "exch":
        return _NATIVE.format(operation=operation, kind="b", bits=bits), register
    if floating and operation != "add":
        return _FLOAT_EXTREME.format(order="lt" if operation == "min" else "gt", bits=bits), register
    # PTX adds signed 64-bit integers as unsigned ones, with the same bits.
    kind = "f" if floating else "u" if operation == "add" else kind
    return _NATIVE.format(operation=operation, kind=kind, bits=bits), register


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

    values = (types.Any,) * (len(PARAMETERS.get(name, ("array", "index", "value"))) - 2)
    lower_builtin(function, types.Array, types.Integer, *values)(lower)
    lower_builtin(function, types.Array, types.BaseTuple, *values)(lower)


def _lower(operation: str, builder: Any, target: Any, args: Any) -> None:
    array_type, index_type, *value_types = (builder.get_numba_type(arg.name) for arg in args)
    array, index, *given = (builder.load_var(arg) for arg in args)
    dtype = array_type.dtype
    is_tuple = isinstance(index_type, types.BaseTuple)
    pairs = zip(tuple(index_type), tuple(index), strict=True) if is_tuple else [(index_type, index)]
    indices = [
        _wrapped(builder.lower_cast(kind, types.int64, part), array, axis) for axis, (kind, part) in enumerate(pairs)
    ]
    check_indices(indices, [memref.dim(array, index_of(axis)) for axis in range(len(indices))])
    element = builder.get_mlir_type(dtype)
    if narrow(array, indices):
        pointer = narrow_pointer(array_type, array, indices, element)
    else:
        pointer = memref_to_llvm_ptr(array, indices, element)
    values = [builder.lower_cast(kind, dtype, value) for kind, value in zip(value_types, given, strict=True)]
    text, register = _text(operation, dtype)
    if has_blocks():
        text = text.replace(".global", "")  # of either memory
    if dtype.bitwidth == 16 and isinstance(dtype, types.Float):
        values = [arith.bitcast(T.i16(), value) for value in values]
    word = {"h": T.i16, "r": T.i32}[register]() if dtype.bitwidth < 32 else element
    if register == "r" and dtype.bitwidth < 32:
        widen = arith.extsi if getattr(dtype, "signed", False) else arith.extui
        values = [widen(word, value) for value in values]
    constraints = ",".join([f"={register}", "l", *(register for _ in values), "~{memory}"])
    old = llvm.inline_asm(word, [pointer, *values], text, constraints, has_side_effects=True)
    if register == "r" and dtype.bitwidth < 32:
        old = arith.trunci(T.i16() if dtype.bitwidth == 16 else element, old)
    if dtype.bitwidth == 16 and isinstance(dtype, types.Float):
        old = arith.bitcast(element, old)
    builder.store_var(target, old)


def _wrapped(index: Any, array: Any, axis: int) -> Any:
    """Return an index into an axis, counted from the end if negative."""
    zero = arith.constant(T.i64(), value=0)
    size = arith.index_cast(T.i64(), memref.dim(array, index_of(axis)))
    negative = arith.cmpi(arith.CmpIPredicate.slt, index, zero)
    return index_of(arith.addi(index, arith.select(negative, size, zero)))


for _function, _operation in _FUNCTIONS.items():
    _declare(_function, _operation)
