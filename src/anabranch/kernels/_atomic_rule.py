"""Typing rule of the atomics, for both compilers: their type systems are alike but share no class."""

from __future__ import annotations

from typing import Any


def atomic_signature(name: str, types: Any, errors: Any, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
    """Return ``(result, array, index, value)``, the types for a call of an atomic with `args`.

    Raises
    ------
    errors.TypingError
        The arguments are no array, index and value for it.
    """
    if kws or len(args) != 3:
        raise errors.TypingError(f"{name} takes three arguments: array, index, value")
    array, index, value = args
    _check_array(name, types, errors, array)
    _check_index(name, types, errors, array, index)
    if not context.can_convert(value, array.dtype):
        raise errors.TypingError(f"{name}: a value of {value} cannot become {array.dtype}")
    ints = types.intp if array.ndim == 1 else types.UniTuple(types.intp, array.ndim)
    return array.dtype, array, ints, array.dtype


def _check_array(name: str, types: Any, errors: Any, array: Any) -> None:
    if not isinstance(array, types.Array):
        raise errors.TypingError(f"{name}: the first argument is an array, not {array}")
    if not array.mutable:
        raise errors.TypingError(f"{name}: Cannot modify readonly array of type: {array}")
    if not isinstance(array.dtype, types.Integer) and array.dtype not in (types.float32, types.float64):
        raise errors.TypingError(f"{name} works on integers, float32 and float64, not on an array of {array.dtype}")


def _check_index(name: str, types: Any, errors: Any, array: Any, index: Any) -> None:
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if not all(isinstance(part, types.Integer) for part in parts):
        raise errors.TypingError(f"{name}: the index is an int or a tuple of ints, not {index}")
    if len(parts) != array.ndim:
        raise errors.TypingError(
            f"{name}: an array of {array.ndim} dimensions takes {array.ndim} indices, not {len(parts)}"
        )
