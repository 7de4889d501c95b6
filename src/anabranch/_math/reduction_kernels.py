"""Kernels of reductions on a CPU.

The elements have three axes: outer ones that are kept, those that are reduced, and inner ones that are kept. Ranges of
the reduced axis are independent of the number of workers, so results are, too.

A sum along memory has `_LANES` partial sums, which LLVM keeps in vectors, over `_SEGMENT` elements at a time; rounding
errors grow with the length of a segment and the number of segments, not with the number of elements. A sum across
memory adds up eight rows at a time, element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

from anabranch._math.kernels import cast_to, finished
from anabranch._math.operations import Compute, less, less_complex, swapped
from anabranch.kernels import In, Kernel, Out

COLUMNS: Final = 512  # inner elements per index of `columns`
_LANES: Final = 16
_SEGMENT: Final = 512
# An unsigned index needs no test for a negative one, which would keep LLVM from vectorizing.
_at: Final = numpy.uint64


class Accumulation(NamedTuple):
    """How elements are combined.

    Attributes
    ----------
    combine : callable
        The result of two elements, or of two results.
    load : callable
        What an element counts as.
    identity : int or None
        What changes nothing; None: the first element is the beginning.
    """

    combine: Compute
    load: Callable[..., Any]
    identity: int | None


def _add(a: Any, b: Any) -> Any:
    return a + b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _either(a: Any, b: Any) -> Any:
    return a | b


def _both(a: Any, b: Any) -> Any:
    return a & b


def _is_true(x: Any) -> Any:
    return x != 0


def _least(a: Any, b: Any) -> Any:
    return b if (b < a) | (b != b) else a


def _greatest(a: Any, b: Any) -> Any:
    return b if (b > a) | (b != b) else a


def _is_nan(x: Any) -> Any:
    return (x.real != x.real) | (x.imag != x.imag)


def _least_complex(a: Any, b: Any) -> Any:
    if _is_nan(a):
        return a
    return b if _is_nan(b) or less_complex(b, a) else a


def _greatest_complex(a: Any, b: Any) -> Any:
    if _is_nan(a):
        return a
    return b if _is_nan(b) or less_complex(a, b) else a


def accumulation(name: str, dtype: str, source: str) -> Accumulation:
    """Return how a reduction combines elements of `source`, as numbers of `dtype`."""
    if name in ("any", "all"):
        return Accumulation(_either if name == "any" else _both, _is_true, int(name == "all"))
    if name in ("sum", "mean", "prod"):
        return Accumulation(_multiply if name == "prod" else _add, cast_to(dtype), int(name == "prod"))
    if source == "bool":
        return Accumulation(_both if name == "min" else _either, _is_true, int(name == "min"))
    kind = numpy.dtype(dtype).kind
    least, greatest = (_least_complex, _greatest_complex) if kind == "c" else (_least, _greatest)
    return Accumulation(least if name == "min" else greatest, cast_to(dtype), None)


def _reducer(how: Accumulation, dtype: str) -> Callable[..., Any]:
    """Return the function that reduces a range of a row."""
    combine, load, identity = how
    start = None if identity is None else (numpy.bool_ if dtype == "bool" else cast_to(dtype))(identity)
    has_identity = identity is not None

    def beginning(x: Any, row: Any, begin: Any) -> Any:
        return start if has_identity else load(x[row, begin])

    def reduce_range(x: Any, row: Any, begin: Any, end: Any) -> Any:
        total = beginning(x, row, begin)
        at = begin
        while at + _LANES <= end:
            stop = min(at + _SEGMENT, end - (end - at) % _LANES)
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = beginning(x, row, begin)
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = s0
            for k in range(at, stop, _LANES):
                s0 = combine(s0, load(x[_at(row), _at(k)]))
                s1 = combine(s1, load(x[_at(row), _at(k + 1)]))
                s2 = combine(s2, load(x[_at(row), _at(k + 2)]))
                s3 = combine(s3, load(x[_at(row), _at(k + 3)]))
                s4 = combine(s4, load(x[_at(row), _at(k + 4)]))
                s5 = combine(s5, load(x[_at(row), _at(k + 5)]))
                s6 = combine(s6, load(x[_at(row), _at(k + 6)]))
                s7 = combine(s7, load(x[_at(row), _at(k + 7)]))
                t0 = combine(t0, load(x[_at(row), _at(k + 8)]))
                t1 = combine(t1, load(x[_at(row), _at(k + 9)]))
                t2 = combine(t2, load(x[_at(row), _at(k + 10)]))
                t3 = combine(t3, load(x[_at(row), _at(k + 11)]))
                t4 = combine(t4, load(x[_at(row), _at(k + 12)]))
                t5 = combine(t5, load(x[_at(row), _at(k + 13)]))
                t6 = combine(t6, load(x[_at(row), _at(k + 14)]))
                t7 = combine(t7, load(x[_at(row), _at(k + 15)]))
            first = combine(combine(combine(s0, t0), combine(s1, t1)), combine(combine(s2, t2), combine(s3, t3)))
            second = combine(combine(combine(s4, t4), combine(s5, t5)), combine(combine(s6, t6), combine(s7, t7)))
            total = combine(total, combine(first, second))
            at = stop
        for k in range(at, end):
            total = combine(total, load(x[_at(row), _at(k)]))
        return total

    return reduce_range


def rows(name: str, dtype: str, source: str, divides: bool = False) -> Kernel:
    """Return the kernel that reduces ranges of `size` elements of each row of a matrix; `divides`: by `count`."""
    reduce_range = _reducer(accumulation(name, dtype, source), dtype)
    cast = cast_to(dtype)

    def function(index: Any, x: Any, size: Any, count: Any, out: Any) -> None:
        row, block = index
        begin = block * size
        total = reduce_range(x, row, begin, min(begin + size, x.shape[1]))
        out[row, block] = total / cast(count) if divides else total

    return finished(function, name, (In, "int64", "float64", Out))


def columns(name: str, dtype: str, source: str) -> Kernel:
    """Return the kernel that reduces ranges of `size` elements of the middle axis, for `COLUMNS` inner elements."""
    combine, load, _ = accumulation(name, dtype, source)

    def function(index: Any, x: Any, size: Any, out: Any) -> None:
        outer, block, part = index
        low = part * COLUMNS
        high = min(low + COLUMNS, x.shape[2])
        at = block * size
        end = min(at + size, x.shape[1])
        for j in range(low, high):
            out[_at(outer), _at(block), _at(j)] = load(x[_at(outer), _at(at), _at(j)])
        at += 1
        while at + 8 <= end:
            for j in range(low, high):
                first = combine(load(x[_at(outer), _at(at), _at(j)]), load(x[_at(outer), _at(at + 1), _at(j)]))
                second = combine(load(x[_at(outer), _at(at + 2), _at(j)]), load(x[_at(outer), _at(at + 3), _at(j)]))
                third = combine(load(x[_at(outer), _at(at + 4), _at(j)]), load(x[_at(outer), _at(at + 5), _at(j)]))
                fourth = combine(load(x[_at(outer), _at(at + 6), _at(j)]), load(x[_at(outer), _at(at + 7), _at(j)]))
                eight = combine(combine(first, second), combine(third, fourth))
                out[_at(outer), _at(block), _at(j)] = combine(out[_at(outer), _at(block), _at(j)], eight)
            at += 8
        for k in range(at, end):
            for j in range(low, high):
                value = load(x[_at(outer), _at(k), _at(j)])
                out[_at(outer), _at(block), _at(j)] = combine(out[_at(outer), _at(block), _at(j)], value)

    return finished(function, name, (In, "int64", Out))


def finish(name: str, dtype: str, divides: bool) -> Kernel:
    """Return the kernel that turns accumulated numbers into results."""
    cast = cast_to(dtype)

    def function(index: Any, x: Any, count: Any, out: Any) -> None:
        out[index] = cast(x[index]) / cast(count) if divides else cast(x[index])

    return finished(function, name, (In, "float64", Out))


def _better(name: str, source: str) -> Compute:
    is_least = name == "argmin"
    if numpy.dtype(source).kind == "c":
        before = less_complex if is_least else swapped(less_complex)

        def better_complex(a: Any, b: Any) -> Any:
            return not _is_nan(b) and (_is_nan(a) or before(a, b))

        return better_complex
    comes_before = less if is_least else swapped(less)

    def better(a: Any, b: Any) -> Any:
        return comes_before(a, b) or (a != a and b == b)

    return better


def positions(name: str, source: str) -> Kernel:
    """Return the kernel that finds the position of the least or greatest of `size` elements of the middle axis."""
    better = _better(name, source)
    load = cast_to("uint8" if source == "bool" else source)

    def function(index: Any, x: Any, size: Any, out: Any) -> None:
        outer, inner, block = index
        found = block * size
        best = load(x[outer, found, inner])
        for k in range(found + 1, min(found + size, x.shape[1])):
            value = load(x[_at(outer), _at(k), _at(inner)])
            if better(value, best):
                best = value
                found = k
        out[outer, inner, block] = found

    return finished(function, name, (In, "int64", Out))


def choices(name: str, source: str) -> Kernel:
    """Return the kernel that chooses among the positions that were found in ranges."""
    better = _better(name, source)
    load = cast_to("uint8" if source == "bool" else source)

    def function(index: Any, x: Any, candidates: Any, out: Any) -> None:
        outer, inner = index
        found = candidates[outer, inner, 0]
        best = load(x[outer, found, inner])
        for block in range(1, candidates.shape[2]):
            at = candidates[outer, inner, block]
            value = load(x[outer, at, inner])
            if better(value, best):
                best = value
                found = at
        out[index] = found

    return finished(function, name, (In, In, Out))
