"""Types in which operators of kernels take integers, for both compilers.

Numba makes an unsigned number of two unsigned ones, which wraps where the result is negative, and a float64 of that and
a signed one, which every literal is. Here the results of fewer than 64 bits are signed wherever they fit, as in Python.
"""

from __future__ import annotations

import operator
from typing import Any, Final

_BINARY: Final = frozenset(
    (
        *(operator.add, operator.sub, operator.floordiv, operator.mod, divmod),
        *(operator.iadd, operator.isub, operator.ifloordiv, operator.imod),
        *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
        *(operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
    )
)
_PRODUCT: Final = frozenset({operator.mul, operator.imul})
_UNARY: Final = frozenset({operator.neg, operator.invert})


def operand_types(function: Any, args: Any, integer: Any, int64: Any) -> Any:
    """Return the types in which operands are taken: of one operand, Numba widens the result and not the operand."""
    if function in _UNARY:
        small = isinstance(args[0], integer) and args[0].bitwidth < int64.bitwidth
        return (int64,) if small else args
    if function not in _BINARY and function not in _PRODUCT:
        return args
    if not all(isinstance(kind, integer) and not kind.signed and kind.bitwidth < int64.bitwidth for kind in args):
        return args
    if function in _PRODUCT and sum(kind.bitwidth for kind in args) >= int64.bitwidth:
        return args
    return (int64,) * len(args)
