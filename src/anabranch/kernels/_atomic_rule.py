"""Typing rule of the atomics, for both compilers: their type systems are alike but share no class."""

from __future__ import annotations

from typing import Any, Final

PARAMETERS: Final = {"atomic_cas": ("array", "index", "expected", "value")}
"""Of the atomics with other parameters than array, index and value."""

_NUMBERS: Final = {3: "three", 4: "four"}
_OF_HALF: Final = ("atomic_add", "atomic_cas", "atomic_exchange")


def atomic_signature(name: str, types: Any, errors: Any, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
    """Return ``(result, array, index, value, ...)``, the types for a call of an atomic with `args`.

    Raises
    ------
    errors.TypingError
        The arguments are no array, index and values for it.
    """
    parameters = PARAMETERS.get(name, ("array", "index", "value"))
    if kws or len(args) != len(parameters):
        raise errors.TypingError(f"{name} takes {_NUMBERS[len(parameters)]} arguments: {', '.join(parameters)}")
    array, index, *given = args
    _check_array(name, types, errors, array)
    _check_index(name, types, errors, array, index)
    for value in given:
        if not context.can_convert(value, array.dtype):
            raise errors.TypingError(f"{name}: a value of {value} cannot become {array.dtype}")
    ints = types.UniTuple(types.intp, array.ndim) if isinstance(index, types.BaseTuple) else types.intp
    return array.dtype, array, ints, *(array.dtype for _ in given)


def _check_array(name: str, types: Any, errors: Any, array: Any) -> None:
    if not isinstance(array, types.Array):
        raise errors.TypingError(f"{name}: the first argument is an array, not {array}")
    if not array.mutable:
        raise errors.TypingError(f"{name}: Cannot modify readonly array of type: {array}")
    if isinstance(array.dtype, types.Integer) or array.dtype in (types.float32, types.float64):
        return
    if name not in _OF_HALF:
        raise errors.TypingError(f"{name} works on integers, float32 and float64, not on an array of {array.dtype}")
    if str(array.dtype) != "float16":
        raise errors.TypingError(f"{name} works on integers and floats, not on an array of {array.dtype}")


def _check_index(name: str, types: Any, errors: Any, array: Any, index: Any) -> None:
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if not all(isinstance(part, types.Integer) for part in parts):
        raise errors.TypingError(f"{name}: the index is an int or a tuple of ints, not {index}")
    if len(parts) != array.ndim:
        raise errors.TypingError(
            f"{name}: an array of {array.ndim} dimensions takes {array.ndim} indices, not {len(parts)}"
        )
