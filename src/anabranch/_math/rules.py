"""NumPy's dtype rules for the operations: which dtypes an operation computes in, and what its result is.

A *kind* is the position of a dtype in `names`, or one of a Python number, which takes the dtype of the other operand
(NEP 50).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy

from anabranch._math import kernels
from anabranch._math.operations import Compute, compute_of
from anabranch._memory.dtype import names
from anabranch.kernels import Kernel

INT: Final = len(names)
FLOAT: Final = INT + 1
COMPLEX: Final = INT + 2
_PYTHON: Final[tuple[type, ...]] = (int, float, complex)


class Loop(NamedTuple):
    """What an operation computes.

    Attributes
    ----------
    name : str
        NumPy's name of the operation.
    compute : callable
        The result of one element of each operand.
    operands : tuple of str
        The dtypes to which operands are converted.
    result : str
        The dtype of the result.
    """

    name: str
    compute: Compute
    operands: tuple[str, ...]
    result: str

    def kernel(self, *places: str) -> Kernel:
        """Return the kernel for operands at these places, see `kernels`."""
        if len(self.operands) == 1:
            return kernels.unary(self.name, self.compute, self.operands[0])
        return kernels.binary(self.name, self.compute, self.operands, places)

    def kernel_in_place(self, place: str) -> Kernel:
        """Return the kernel whose result replaces the first operand; a second one is at this place."""
        if len(self.operands) == 1:
            return kernels.unary_in_place(self.name, self.compute, self.operands[0])
        return kernels.binary_in_place(self.name, self.compute, self.operands, place)


def _known(kind: int) -> Any:
    return _PYTHON[kind - INT] if kind >= INT else numpy.dtype(names[kind])


@cache
def loop_of(name: str, *kinds: int) -> Loop:
    """Return what an operation computes for operands of these kinds.

    Raises
    ------
    TypeError
        NumPy has no such operation for these kinds.
    """
    if name == "square":  # of a power, whose dtype it has
        result = loop_of("power", kinds[0], INT).result
        return Loop(name, compute_of(name, result), (result,), result)
    given = [_known(kind) for kind in kinds]
    try:
        *operands, result = getattr(numpy, name).resolve_dtypes((*given, None))
    except TypeError as error:
        shown = " and ".join(each.__name__ if isinstance(each, type) else each.name for each in given)
        raise TypeError(f"{name} is not defined for {shown}: {error}") from None
    loop = tuple(each.name for each in operands)
    return Loop(name, compute_of(name, *loop), loop, result.name)


def check_in_place(loop: Loop, dtype: str) -> None:
    """Raise TypeError unless NumPy would write the result to an array of this dtype."""
    if not numpy.can_cast(loop.result, dtype, "same_kind"):
        raise TypeError(
            f"{loop.name} has a result of {loop.result}, which an array of {dtype} cannot take in place; "
            "write the operation out, as in a = a + b"
        )


@cache
def common_dtype(first: int, second: int) -> str:
    """Return the dtype of elements that come from either of two operands, which are not both Python numbers."""
    return loop_of("add", first, second).result


@cache
def reduction_dtypes(name: str, source: str) -> tuple[str, str]:
    """Return the dtype in which a reduction accumulates elements of a dtype, and that of its result."""
    result: str = getattr(numpy, name)(numpy.zeros(1, source)).dtype.name
    if name in ("sum", "prod", "mean"):
        return kernels.register_type(result), result
    return result, result
