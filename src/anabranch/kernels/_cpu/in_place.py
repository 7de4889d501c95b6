"""Changes of arrays in place by other arrays in kernels on a CPU, as in ``row += other``.

Numba reads past the end of an array that is shorter along an axis. Here that is a ValueError, as in NumPy, and
so is another array that shares elements with the one that changes, of which NumPy makes a copy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numba.core import cgutils

from anabranch.kernels._cpu.overlap import overlap_of, row_of
from anabranch.kernels._failure import NO_BROADCAST, SHARED_ELEMENTS

CHANGES: Final = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod),
    *(operator.ipow, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
)

_Rule = Callable[[Any, Any, Any, Any], Any]


def checked(rule: _Rule) -> _Rule:
    """Return a rule for two arrays that fails unless the second one can be repeated to the shape of the first."""

    def change(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sizes, others = (_sizes(context, builder, *pair) for pair in zip(sig.args, args, strict=True))
        one = sizes[0].type(1)
        wholes = [*[one] * max(0, len(others) - len(sizes)), *sizes[max(0, len(sizes) - len(others)) :]]
        with builder.if_then(builder.not_(can_repeat(builder, others, wholes)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (NO_BROADCAST,))
        if sig.args[0].ndim == sig.args[1].ndim == 1:
            rows = (row_of(context, builder, *pair) for pair in zip(sig.args, args, strict=True))
            with builder.if_then(overlap_of(builder, *rows).shares, likely=False):
                context.call_conv.return_user_exc(builder, ValueError, (SHARED_ELEMENTS,))
        return rule(context, builder, sig, args)

    return change


def can_repeat(builder: Any, sizes: Any, wholes: Any) -> Any:
    """Return whether each size is that of the axis along which an array is repeated, or 1."""
    fits = cgutils.true_bit
    for size, whole in zip(sizes, wholes, strict=True):
        same = builder.icmp_signed("==", size, whole)
        fits = builder.and_(fits, builder.or_(same, builder.icmp_signed("==", size, size.type(1))))
    return fits


def _sizes(context: Any, builder: Any, kind: Any, array: Any) -> list[Any]:
    shape = context.make_array(kind)(context, builder, array).shape
    return list(cgutils.unpack_tuple(builder, shape, kind.ndim))
