"""What the atomics mean to Numba on a CPU."""

from __future__ import annotations

from typing import Any, Final

from numba.core import cgutils, errors, types
from numba.core.imputils import impl_ret_untracked
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from anabranch.kernels._atomic import atomic_add, atomic_max, atomic_min

_FLOATS: Final = (types.float32, types.float64)
# Names of LLVM's operations: signed integers, unsigned integers, floats.
_OPERATIONS: Final = {
    atomic_add: ("add", "add", "fadd"),
    atomic_min: ("min", "umin", "fmin"),
    atomic_max: ("max", "umax", "fmax"),
}


def _declare(function: Any, operations: tuple[str, str, str]) -> None:
    name = function.__name__

    class Template(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
        key = function

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            if kws or len(args) != 3:
                raise errors.TypingError(f"{name} takes three arguments: array, index, value")
            array, index, value = args
            _check_array(name, array)
            _check_index(name, array, index)
            if not self.context.can_convert(value, array.dtype):
                raise errors.TypingError(f"{name}: a value of {value} cannot become {array.dtype}")
            ints = types.intp if array.ndim == 1 else types.UniTuple(types.intp, array.ndim)
            return signature(array.dtype, array, ints, array.dtype)

    infer_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
        return _lower(operations, context, builder, sig, args)

    lower_builtin(function, types.Array, types.intp, types.Any)(lower)
    lower_builtin(function, types.Array, types.BaseTuple, types.Any)(lower)


def _check_array(name: str, array: Any) -> None:
    if not isinstance(array, types.Array):
        raise errors.TypingError(f"{name}: the first argument is an array, not {array}")
    if not array.mutable:
        raise errors.TypingError(f"{name}: Cannot modify readonly array of type: {array}")
    if not isinstance(array.dtype, types.Integer) and array.dtype not in _FLOATS:
        raise errors.TypingError(f"{name} works on integers, float32 and float64, not on an array of {array.dtype}")


def _check_index(name: str, array: Any, index: Any) -> None:
    items: Any = index
    parts = tuple(items) if isinstance(index, types.BaseTuple) else (items,)
    if not all(isinstance(part, types.Integer) for part in parts):
        raise errors.TypingError(f"{name}: the index is an int or a tuple of ints, not {index}")
    if len(parts) != array.ndim:
        raise errors.TypingError(
            f"{name}: an array of {array.ndim} dimensions takes {array.ndim} indices, not {len(parts)}"
        )


def _lower(operations: Any, context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
    kind, index_kind, _ = sig.args
    array = context.make_array(kind)(context, builder, args[0])
    if isinstance(index_kind, types.BaseTuple):
        indices = cgutils.unpack_tuple(builder, args[1], count=len(index_kind))
    else:
        indices = [args[1]]
    pointer = cgutils.get_item_pointer(context, builder, kind, array, indices, wraparound=True)
    signed, unsigned, floating = operations
    if isinstance(kind.dtype, types.Float):
        operation = floating
    else:
        operation = signed if kind.dtype.signed else unsigned
    # Monotonic, CUDA's relaxed: an update of one element orders no other.
    old = builder.atomic_rmw(operation, pointer, args[2], "monotonic")
    return impl_ret_untracked(context, builder, sig.return_type, old)


for _function, _operations in _OPERATIONS.items():
    _declare(_function, _operations)
