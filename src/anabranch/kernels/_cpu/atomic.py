"""Atomics for Numba on a CPU."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.imputils import impl_ret_untracked
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from anabranch.kernels._atomic import atomic_add, atomic_cas, atomic_exchange, atomic_max, atomic_min
from anabranch.kernels._atomic_rule import PARAMETERS, atomic_signature
from anabranch.kernels._cpu.half import Half, read_type

# LLVM's operations: for signed integers, unsigned integers, floats.
_OPERATIONS: Final = {
    atomic_add: ("add", "add", "fadd"),
    atomic_min: ("min", "umin", "fmin"),
    atomic_max: ("max", "umax", "fmax"),
    atomic_exchange: ("xchg", "xchg", "xchg"),
    atomic_cas: ("cas", "cas", "cas"),
}
# Monotonic is CUDA's relaxed: an update orders no other memory access.
_ORDER: Final = "monotonic"


def _declare(function: Any, operations: tuple[str, str, str]) -> None:
    name = function.__name__

    class Template(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
        key = function

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            result, *accepted = atomic_signature(name, types, errors, self.context, args, kws)
            return signature(read_type(result), *accepted)

    infer_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
        return _lower(operations, context, builder, sig, args)

    values = (types.Any,) * (len(PARAMETERS.get(name, ("array", "index", "value"))) - 2)
    lower_builtin(function, types.Array, types.intp, *values)(lower)
    lower_builtin(function, types.Array, types.BaseTuple, *values)(lower)


def _lower(operations: Any, context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
    kind, index_kind = sig.args[:2]
    array = context.make_array(kind)(context, builder, args[0])
    if isinstance(index_kind, types.BaseTuple):
        indices = cgutils.unpack_tuple(builder, args[1], count=len(index_kind))
    else:
        indices = [args[1]]
    checked = context.enable_boundscheck
    pointer = cgutils.get_item_pointer(context, builder, kind, array, indices, wraparound=True, boundscheck=checked)
    signed, unsigned, floating = operations
    if isinstance(kind.dtype, types.Float):
        operation = floating
    else:
        operation = signed if kind.dtype.signed else unsigned
    if operation == "cas":
        old = _compare_and_swap(context, builder, kind.dtype, pointer, args[2:])
    elif isinstance(kind.dtype, Half):
        old = _update_half(builder, operation, pointer, args[2])
    else:
        old = builder.atomic_rmw(operation, pointer, args[2], _ORDER)
    return impl_ret_untracked(context, builder, sig.return_type, old)


def _compare_and_swap(context: Any, builder: Any, dtype: Any, pointer: Any, values: Any) -> Any:
    if isinstance(dtype, types.Integer):
        return builder.extract_value(builder.cmpxchg(pointer, *values, _ORDER, _ORDER), 0)
    model = context.data_model_manager[dtype]
    data = [model.as_data(builder, value) for value in values]
    word = ir.IntType(dtype.bitwidth)
    bits = [builder.bitcast(value, word) for value in data]
    swapped = builder.cmpxchg(builder.bitcast(pointer, word.as_pointer()), *bits, _ORDER, _ORDER)
    return model.from_data(builder, builder.bitcast(builder.extract_value(swapped, 0), data[0].type))


def _update_half(builder: Any, operation: str, pointer: Any, value: Any) -> Any:
    """Emit a loop around a compare-and-swap: processors have no update of 16-bit floats. Return the old value."""
    word, half = ir.IntType(16), ir.HalfType()
    place = builder.bitcast(pointer, word.as_pointer())
    before = builder.block
    first = builder.load_atomic(place, _ORDER, 2)
    retry, done = builder.append_basic_block("retry"), builder.append_basic_block("done")
    builder.branch(retry)
    builder.position_at_end(retry)
    seen = builder.phi(word)
    seen.add_incoming(first, before)
    old = builder.fpext(builder.bitcast(seen, half), value.type)
    fresh = value if operation == "xchg" else builder.fadd(old, value)
    swapped = builder.cmpxchg(place, seen, builder.bitcast(builder.fptrunc(fresh, half), word), _ORDER, _ORDER)
    seen.add_incoming(builder.extract_value(swapped, 0), retry)
    builder.cbranch(builder.extract_value(swapped, 1), done, retry)
    builder.position_at_end(done)
    return old


for _function, _operations in _OPERATIONS.items():
    _declare(_function, _operations)
