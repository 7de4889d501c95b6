"""Arrays of float16 on a CPU; Numba has no half precision.

An element takes 16 bits in memory and is a float32 in a register: widened on load, rounded on store, as on hardware
without half-precision arithmetic. A float64 is stored as if it had been rounded once.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.core.typeconv.rules import default_casting_rules
from numba.extending import lower_cast, models, register_model

_MEMORY: Final = ir.HalfType()
_REGISTER: Final = ir.FloatType()


class Half(types.Float):  # type: ignore[misc]  # Numba has no types
    """Numba type of an element of a float16 array."""


half: Final = Half("float16")


def read_type(element: Any) -> Any:
    """Return the type of what is read from an array with elements of a type; Numba's functions know a float32."""
    return types.float32 if element == half else element


def constant_type(kind: Any) -> Any:
    """Return the type of a constant of Numba's type, whose float16 has no code on a CPU."""
    if kind == types.float16:
        return types.float32
    if isinstance(kind, types.Array) and kind.dtype == types.float16:
        return kind.copy(dtype=half)
    if isinstance(kind, (types.UniTuple, types.Tuple)) and types.float16 in kind.types:
        return types.Tuple(tuple(map(constant_type, kind.types)))
    return kind


@register_model(Half)
class _HalfModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba has no types
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _REGISTER)

    def get_data_type(self) -> Any:
        return _MEMORY

    def get_argument_type(self) -> Any:
        return _REGISTER

    def get_return_type(self) -> Any:
        return _REGISTER

    def as_data(self, builder: Any, value: Any) -> Any:
        return builder.fptrunc(value, _MEMORY)

    def from_data(self, builder: Any, value: Any) -> Any:
        return builder.fpext(value, _REGISTER)


# Operations resolve as for float32: half promotes to float32, and every type that converts to float32 converts to half.
default_casting_rules.promote_unsafe(half, types.float32)


def _from_half(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.cast(builder, value, types.float32, target)


def _to_half(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    if source == types.float64:
        return _rounded_to_odd(builder, value)
    return context.cast(builder, value, source, types.float32)


def _rounded_to_odd(builder: Any, value: Any) -> Any:
    """Return the float32 next to a float64: the one with an odd last bit, unless the conversion is exact.

    Rounded again, to a float16, that is what the float64 is rounded to: it is no tie unless the float64 is one. LLVM
    converts directly by a call, which keeps loops from being vectorized.
    """
    word = ir.IntType(32)
    nearest = builder.fptrunc(value, _REGISTER)
    back = builder.fpext(nearest, value.type)
    inexact = builder.fcmp_ordered("!=", back, value)  # false for NaN
    magnitude = builder.module.declare_intrinsic("llvm.fabs", [value.type])
    beyond = builder.fcmp_ordered(">", builder.call(magnitude, [back]), builder.call(magnitude, [value]))
    towards_zero = builder.sub(builder.bitcast(nearest, word), builder.zext(beyond, word))
    return builder.bitcast(builder.or_(towards_zero, builder.zext(inexact, word)), _REGISTER)


for _kind in (types.Float, types.Integer, types.Boolean):
    lower_cast(Half, _kind)(_from_half)
    lower_cast(_kind, Half)(_to_half)
lower_cast(types.IntegerLiteral, Half)(_to_half)  # else Numba's own cast of a literal is as good a match
lower_cast(Half, types.Complex)(_from_half)
