"""Kernels of element-wise operations, made for an operation and for how the operands are indexed.

A launch runs over the elements of the result. An operand is indexed by all axes (``"all"``), by all but the last, along
which it is broadcast (``"outer"``), or is one element (``"one"``), so that no operand needs strides of zero along
its last axis, where compilers vectorize. A ``"scalar"`` is an argument by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy

from anabranch._math.operations import Compute
from anabranch.kernels import In, InOut, Kernel, Out, kernel

At = Callable[..., Any]


def _all(x: Any, index: Any) -> Any:
    return x[index]


def _one(x: Any, index: Any) -> Any:
    return x[0]


def _scalar(x: Any, index: Any) -> Any:
    return x


def _outer_of_2(x: Any, index: Any) -> Any:
    return x[index[0]]


def _outer_of_3(x: Any, index: Any) -> Any:
    return x[index[0], index[1]]


def _outer_of_4(x: Any, index: Any) -> Any:
    return x[index[0], index[1], index[2]]


_AT: Final[dict[str, At]] = {
    "all": _all,
    "one": _one,
    "scalar": _scalar,
    "outer2": _outer_of_2,
    "outer3": _outer_of_3,
    "outer4": _outer_of_4,
}


def _as_it_is(x: Any) -> Any:
    return x


def register_type(dtype: str) -> str:
    """Return the dtype in which kernels compute with numbers of a dtype."""
    return "float32" if dtype == "float16" else dtype


def cast_to(dtype: str) -> Callable[..., Any]:
    """Return the conversion of an element to a dtype, as kernels compute with it."""
    if dtype == "bool":
        return _as_it_is
    conversion: Callable[..., Any] = getattr(numpy, register_type(dtype))
    return conversion


def finished(function: Any, name: str, accesses: Sequence[object]) -> Kernel:
    """Return the kernel of a function with annotations for the parameters after the index."""
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    function.__annotations__ = dict(zip(names, accesses, strict=True))
    function.__name__ = function.__qualname__ = name
    return kernel(function)


def _access(place: str, dtype: str) -> object:
    return register_type(dtype) if place == "scalar" else In


def unary(name: str, compute: Compute, dtype: str) -> Kernel:
    """Return the kernel of an operation with one operand, of the result's shape."""
    cast = cast_to(dtype)

    def function(index: Any, a: Any, out: Any) -> None:
        out[index] = compute(cast(a[index]))

    return finished(function, name, (In, Out))


def unary_in_place(name: str, compute: Compute, dtype: str) -> Kernel:
    """Return the kernel of an operation whose result replaces its operand."""
    cast = cast_to(dtype)

    def function(index: Any, a: Any) -> None:
        a[index] = compute(cast(a[index]))

    return finished(function, name, (InOut,))


def binary(name: str, compute: Compute, dtypes: Sequence[str], places: Sequence[str]) -> Kernel:
    """Return the kernel of an operation with two operands."""
    first, second = (_AT[place] for place in places)
    cast_first, cast_second = map(cast_to, dtypes)

    def function(index: Any, a: Any, b: Any, out: Any) -> None:
        out[index] = compute(cast_first(first(a, index)), cast_second(second(b, index)))

    return finished(function, name, (*map(_access, places, dtypes), Out))


def binary_in_place(name: str, compute: Compute, dtypes: Sequence[str], place: str) -> Kernel:
    """Return the kernel of an operation whose result replaces the first operand."""
    second = _AT[place]
    cast_first, cast_second = map(cast_to, dtypes)

    def function(index: Any, a: Any, b: Any) -> None:
        a[index] = compute(cast_first(a[index]), cast_second(second(b, index)))

    return finished(function, name, (InOut, _access(place, dtypes[1])))


def _is_true(x: Any) -> Any:
    return x != 0


def _is_true_complex(x: Any) -> Any:
    return x.real != 0 or x.imag != 0


def choice(condition_dtype: str, dtype: str, places: Sequence[str]) -> Kernel:
    """Return the kernel that takes an element of either operand."""
    test, first, second = (_AT[place] for place in places)
    cast = cast_to(dtype)
    is_true = _is_true_complex if numpy.dtype(condition_dtype).kind == "c" else _is_true

    def function(index: Any, condition: Any, a: Any, b: Any, out: Any) -> None:
        out[index] = cast(first(a, index)) if is_true(test(condition, index)) else cast(second(b, index))

    return finished(function, "where", (In, *(_access(place, dtype) for place in places[1:]), Out))


def sequence(dtype: str) -> Kernel:
    """Return the kernel that counts in steps, in the dtype itself as NumPy does."""
    cast = cast_to(dtype)

    def function(index: Any, start: Any, step: Any, out: Any) -> None:
        out[index] = cast(start + cast(index) * step)

    return finished(function, "arange", (register_type(dtype), register_type(dtype), Out))


def spaced(dtype: str, complete: bool) -> Kernel:
    """Return the kernel of evenly spaced numbers, computed in float64; `complete`: the last one is `stop`."""
    # Storing the float64 rounds it to a float16 once; a float32 in between would be rounded, too.
    cast = _as_it_is if dtype == "float16" else cast_to(dtype)
    floors = numpy.dtype(dtype).kind in "iu"

    def function(index: Any, start: Any, step: Any, stop: Any, out: Any) -> None:
        value = start + index * step
        if complete and index == out.shape[0] - 1:
            value = stop
        if floors:
            value = numpy.floor(value)
        out[index] = cast(value)

    wide = "complex128" if numpy.dtype(dtype).kind == "c" else "float64"
    return finished(function, "linspace", (wide, wide, wide, Out))
