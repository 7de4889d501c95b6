"""Changes of arrays in place by other arrays in kernels on a CPU, as in ``row += other``.

Numba reads past the end of an array that is shorter along an axis. Here that is a ValueError, as in NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numba.core import cgutils

CHANGES: Final = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod),
    *(operator.ipow, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
)

_Rule = Callable[[Any, Any, Any, Any], Any]


def checked(rule: _Rule) -> _Rule:
    """Return a rule for two arrays that fails unless the second one can be repeated to the shape of the first."""

    def change(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sizes, others = (_sizes(context, builder, *pair) for pair in zip(sig.args, args, strict=True))
        fits = cgutils.true_bit
        for axis, size in enumerate(reversed(others), 1):
            whole = sizes[-axis] if axis <= len(sizes) else size.type(1)
            same = builder.icmp_signed("==", size, whole)
            fits = builder.and_(fits, builder.or_(same, builder.icmp_signed("==", size, size.type(1))))
        with builder.if_then(builder.not_(fits), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, ("unable to broadcast argument 1 to output array",))
        return rule(context, builder, sig, args)

    return change


def _sizes(context: Any, builder: Any, kind: Any, array: Any) -> list[Any]:
    shape = context.make_array(kind)(context, builder, array).shape
    return list(cgutils.unpack_tuple(builder, shape, kind.ndim))
