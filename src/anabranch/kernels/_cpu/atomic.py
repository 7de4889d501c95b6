"""Atomics for Numba on a CPU."""

from __future__ import annotations

from typing import Any, Final

from numba.core import cgutils, errors, types
from numba.core.imputils import impl_ret_untracked
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from anabranch.kernels._atomic import atomic_add, atomic_max, atomic_min
from anabranch.kernels._atomic_rule import atomic_signature

# LLVM's operations: for signed integers, unsigned integers, floats.
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
            result, *accepted = atomic_signature(name, types, errors, self.context, args, kws)
            return signature(result, *accepted)

    infer_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
        return _lower(operations, context, builder, sig, args)

    lower_builtin(function, types.Array, types.intp, types.Any)(lower)
    lower_builtin(function, types.Array, types.BaseTuple, types.Any)(lower)


def _lower(operations: Any, context: Any, builder: Any, sig: Any, args: tuple[Any, ...]) -> Any:
    kind, index_kind, _ = sig.args
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
    # Monotonic is CUDA's relaxed: an update orders no other memory access.
    old = builder.atomic_rmw(operation, pointer, args[2], "monotonic")
    return impl_ret_untracked(context, builder, sig.return_type, old)


for _function, _operations in _OPERATIONS.items():
    _declare(_function, _operations)
