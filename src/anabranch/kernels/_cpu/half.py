"""Arrays of float16 on a CPU; Numba has no half precision.

An element takes 16 bits in memory and is a float32 in a register: widened on load, rounded on store, as on hardware
without half-precision arithmetic.
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
    return context.cast(builder, value, source, types.float32)


for _kind in (types.Float, types.Integer, types.Boolean):
    lower_cast(Half, _kind)(_from_half)
    lower_cast(_kind, Half)(_to_half)
lower_cast(types.IntegerLiteral, Half)(_to_half)  # else Numba's own cast of a literal is as good a match
lower_cast(Half, types.Complex)(_from_half)
