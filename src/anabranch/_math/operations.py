"""What element-wise operations compute from one element of each operand; kernels call these functions.

The operands have one type, that of NumPy's loop. The functions are compiled for CPUs and for CUDA, and use only what
both compilers have: division by operators follows NumPy in kernels, except as noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy

Compute = Callable[..., Any]

_LEAST_SQUARE: Final = 1e-290  # of larger ones none has lost digits


def add(a: Any, b: Any) -> Any:
    return a + b


def subtract(a: Any, b: Any) -> Any:
    return a - b


def multiply(a: Any, b: Any) -> Any:
    return a * b


def true_divide(a: Any, b: Any) -> Any:
    return a / b


def floor_divide(a: Any, b: Any) -> Any:
    return a // b


def floor_divide_small(a: Any, b: Any) -> Any:
    # Of at most 16 bits, as floats, whose division is a vector instruction and that of integers is not. What is rounded
    # down is at least 1/2b away from an integer, so rounding errors do not matter. The inverse of a number is computed
    # once.
    inverse = numpy.float32(1) / numpy.float32(b) if b != 0 else numpy.float32(0)
    half = numpy.float32(0.5) * math.fabs(inverse)
    return numpy.int32(numpy.floor(numpy.float32(a) * inverse + half))


def floor_divide_floats(a: Any, b: Any) -> Any:
    # By zero, compilers for GPUs give nan.
    return a / b if b == 0 else a // b


def remainder(a: Any, b: Any) -> Any:
    return a % b


def remainder_small(divide: Compute) -> Compute:
    """Return the remainder that belongs to a division of integers of at most 16 bits."""

    def compute(a: Any, b: Any) -> Any:
        # Floats that are integers of at most 17 bits: the difference is exact.
        rest = numpy.float32(a) - numpy.float32(divide(a, b)) * numpy.float32(b)
        return numpy.int32(rest if b != 0 else numpy.float32(0))

    return compute


def power(a: Any, b: Any) -> Any:
    return a**b


def power_of_complex(convert: Compute) -> Compute:
    """Return the function for complex numbers of one dtype, to which `convert` converts a number."""

    def compute(a: Any, b: Any) -> Any:
        # The compilers multiply a logarithm, which zero does not have.
        if a.real == 0 and a.imag == 0:
            if b.real == 0 and b.imag == 0:
                return convert(1.0)
            return convert(0.0 if b.real > 0 else math.nan)
        return a**b

    return compute


def power_of_unsigned(a: Any, b: Any) -> Any:
    one = numpy.uint64(1)
    base = numpy.uint64(a)
    left = numpy.uint64(b)
    result = one
    while left != numpy.uint64(0):
        if left & one:
            result = result * base
        base = base * base
        left = left >> one
    return result


def power_of_signed(a: Any, b: Any) -> Any:
    # To a negative power: the integer part of the quotient.
    base = numpy.int64(a)
    left = numpy.int64(b)
    result = numpy.int64(1)
    if left < 0:
        if base == -1:
            return numpy.int64(-1) if left & 1 else result
        return result if base == 1 else numpy.int64(0)
    while left != 0:
        if left & 1:
            result = result * base
        base = base * base
        left = left >> 1
    return result


def square(a: Any) -> Any:
    return a * a


def reciprocal_of(convert: Compute) -> Compute:
    """Return the function for floats of one type, to which `convert` converts a number."""

    def compute(a: Any) -> Any:
        return convert(1.0) / a

    return compute


def root(a: Any) -> Any:
    return numpy.sqrt(a)


def logical_or(a: Any, b: Any) -> Any:
    return a or b


def logical_and(a: Any, b: Any) -> Any:
    return a and b


def bitwise_and(a: Any, b: Any) -> Any:
    return a & b


def bitwise_or(a: Any, b: Any) -> Any:
    return a | b


def bitwise_xor(a: Any, b: Any) -> Any:
    return a ^ b


def invert(a: Any) -> Any:
    return ~a


def logical_not(a: Any) -> Any:
    return not a


def equal(a: Any, b: Any) -> Any:
    return a == b


def not_equal(a: Any, b: Any) -> Any:
    return a != b


def less(a: Any, b: Any) -> Any:
    return a < b


def less_equal(a: Any, b: Any) -> Any:
    return a <= b


def less_complex(a: Any, b: Any) -> Any:
    """Compare by the real parts, then by the imaginary ones; false if one is nan."""
    return (a.real < b.real and a.imag == a.imag and b.imag == b.imag) or (a.real == b.real and a.imag < b.imag)


def less_equal_complex(a: Any, b: Any) -> Any:
    return (a.real < b.real and a.imag == a.imag and b.imag == b.imag) or (a.real == b.real and a.imag <= b.imag)


def equal_across_signs(a: Any, b: Any) -> Any:
    return a >= 0 and numpy.uint64(a) == b


def not_equal_across_signs(a: Any, b: Any) -> Any:
    return a < 0 or numpy.uint64(a) != b


def less_across_signs(a: Any, b: Any) -> Any:
    return a < 0 or numpy.uint64(a) < b


def less_equal_across_signs(a: Any, b: Any) -> Any:
    return a < 0 or numpy.uint64(a) <= b


def equal_complex(a: Any, b: Any) -> Any:
    return a.real == b.real and a.imag == b.imag


def not_equal_complex(a: Any, b: Any) -> Any:
    return a.real != b.real or a.imag != b.imag


def swapped(compute: Compute) -> Compute:
    """Return the function of the operands in the other order."""

    def compute_swapped(a: Any, b: Any) -> Any:
        return compute(b, a)

    return compute_swapped


def positive(a: Any) -> Any:
    return a


def negative(a: Any) -> Any:
    return -a


def absolute(a: Any) -> Any:
    return abs(a)


def absolute_of_float(a: Any) -> Any:
    return math.fabs(a)


def absolute_of_complex64(a: Any) -> Any:
    # No square of a float32 is beyond the range of float64; this is a vector, and a call of hypot is none.
    real = math.fabs(numpy.float64(a.real))
    imag = math.fabs(numpy.float64(a.imag))
    size = numpy.sqrt(real * real + imag * imag)
    return numpy.float32(math.inf if (real == math.inf) | (imag == math.inf) else size)


def absolute_of_complex128(a: Any) -> Any:
    squares = a.real * a.real + a.imag * a.imag
    if _LEAST_SQUARE < squares < math.inf:
        return numpy.sqrt(squares)
    return math.hypot(a.real, a.imag)


_BY_KIND: Final[dict[str, dict[str, Compute]]] = {
    "b": {
        "add": logical_or,
        "multiply": logical_and,
        "bitwise_or": logical_or,
        "bitwise_and": logical_and,
        "bitwise_xor": not_equal,
        "invert": logical_not,
        "absolute": positive,
    },
    "i": {"power": power_of_signed},
    "u": {"power": power_of_unsigned, "absolute": positive},
    "f": {"floor_divide": floor_divide_floats, "absolute": absolute_of_float},
    "c": {
        "equal": equal_complex,
        "not_equal": not_equal_complex,
        "absolute": absolute_of_complex128,
        "less": less_complex,
        "less_equal": less_equal_complex,
        "greater": swapped(less_complex),
        "greater_equal": swapped(less_equal_complex),
    },
}
_SMALL: Final[dict[str, Compute]] = {
    "floor_divide": floor_divide_small,
    "remainder": remainder_small(floor_divide_small),
}
_ACROSS_SIGNS: Final[dict[str, Compute]] = {
    "equal": equal_across_signs,
    "not_equal": not_equal_across_signs,
    "less": less_across_signs,
    "less_equal": less_equal_across_signs,
}
_MIRRORED: Final = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
_GENERAL: Final[dict[str, Compute]] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "true_divide": true_divide,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "power": power,
    "bitwise_and": bitwise_and,
    "bitwise_or": bitwise_or,
    "bitwise_xor": bitwise_xor,
    "invert": invert,
    "square": square,
    "sqrt": root,
    "equal": equal,
    "not_equal": not_equal,
    "less": less,
    "less_equal": less_equal,
    "greater": swapped(less),
    "greater_equal": swapped(less_equal),
    "positive": positive,
    "negative": negative,
    "absolute": absolute,
}


def compute_of(name: str, *dtypes: str) -> Compute:
    """Return what a ufunc of NumPy computes for operands of these dtypes."""
    kinds = "".join(numpy.dtype(dtype).kind for dtype in dtypes)
    if name == "power" and kinds[0] == "c":
        return power_of_complex(getattr(numpy, dtypes[0]))
    if name == "reciprocal":
        return reciprocal_of(numpy.float64 if dtypes[0] == "float64" else numpy.float32)
    if name == "absolute" and dtypes[0] == "complex64":
        return absolute_of_complex64
    if name in _SMALL and kinds[0] in "iu" and numpy.dtype(dtypes[0]).itemsize <= 2:
        return _SMALL[name]
    if kinds == "iu":
        if name in _ACROSS_SIGNS:
            return _ACROSS_SIGNS[name]
        return not_across_signs(_ACROSS_SIGNS[_complement(name)])
    if kinds == "ui":
        return swapped(compute_of(_MIRRORED[name], *reversed(dtypes)))
    return _BY_KIND[kinds[0]].get(name, _GENERAL[name])


def _complement(name: str) -> str:
    return {"greater": "less_equal", "greater_equal": "less"}[name]


def not_across_signs(compute: Compute) -> Compute:
    """Return the opposite of a comparison that holds for none or all of the orders."""

    def opposite(a: Any, b: Any) -> Any:
        return not compute(a, b)

    return opposite
