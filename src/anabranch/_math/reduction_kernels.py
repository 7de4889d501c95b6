"""Kernels of reductions on a CPU.

The elements have three axes: outer ones that are kept, those that are reduced, and inner ones that are kept. Ranges of
the reduced axis are independent of the number of workers, so results are, too.

LLVM vectorizes a loop over integers by itself, but keeps the order of floats. A sum of floats along memory has
`_LANES` partial sums therefore, over `_SEGMENT` elements at a time; rounding errors grow with the length of a segment
and the number of segments, not with the number of elements. The least of floats has as many partial results, which
ignore nan; a second loop over the segment, which is in the cache by then, looks for nan. A sum across memory adds up
eight rows at a time, element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

from anabranch._math.kernels import cast_to, finished
from anabranch._math.operations import Compute, less, less_complex, swapped
from anabranch.kernels import In, Kernel, Out

COLUMNS: Final = 512  # inner elements per index of `columns`
_LANES: Final = 8
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


def _lower(a: Any, b: Any) -> Any:
    return min(a, b)


def _higher(a: Any, b: Any) -> Any:
    return max(a, b)


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


def _by_one(how: Accumulation, start: Any) -> Callable[..., Any]:
    """Return the function that reduces a range of a row, one element after the other."""
    combine, load, _ = how
    has_start = start is not None

    def reduce_range(x: Any, row: Any, begin: Any, end: Any) -> Any:
        total = start if has_start else load(x[row, begin])
        for k in range(begin, end):
            total = combine(total, load(x[_at(row), _at(k)]))
        return total

    return reduce_range


def _by_sums(how: Accumulation, start: Any) -> Callable[..., Any]:
    """Return the function that reduces a range of a row with partial sums or products."""
    combine, load, _ = how

    def four(x: Any, row: Any, k: Any) -> Any:
        left = combine(load(x[_at(row), _at(k)]), load(x[_at(row), _at(k + _LANES)]))
        right = combine(load(x[_at(row), _at(k + 2 * _LANES)]), load(x[_at(row), _at(k + 3 * _LANES)]))
        return combine(left, right)

    def reduce_range(x: Any, row: Any, begin: Any, end: Any) -> Any:
        total = start
        at = begin
        while at + 4 * _LANES <= end:
            stop = min(at + _SEGMENT, end - (end - at) % (4 * _LANES))
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = start
            for k in range(at, stop, 4 * _LANES):
                s0 = combine(s0, four(x, row, k))
                s1 = combine(s1, four(x, row, k + 1))
                s2 = combine(s2, four(x, row, k + 2))
                s3 = combine(s3, four(x, row, k + 3))
                s4 = combine(s4, four(x, row, k + 4))
                s5 = combine(s5, four(x, row, k + 5))
                s6 = combine(s6, four(x, row, k + 6))
                s7 = combine(s7, four(x, row, k + 7))
            left = combine(combine(s0, s4), combine(s2, s6))
            total = combine(total, combine(left, combine(combine(s1, s5), combine(s3, s7))))
            at = stop
        for k in range(at, end):
            total = combine(total, load(x[_at(row), _at(k)]))
        return total

    return reduce_range


def _by_truth(how: Accumulation, start: Any) -> Callable[..., Any]:
    """Return the function that reduces a range of a row to a truth value, and stops once that cannot change."""
    combine, load, _ = how

    def reduce_range(x: Any, row: Any, begin: Any, end: Any) -> Any:
        total = start
        at = begin
        while at < end and total == start:
            stop = min(at + _SEGMENT, end)
            for k in range(at, stop):
                total = combine(total, load(x[_at(row), _at(k)]))
            at = stop
        return total

    return reduce_range


def _by_extremes(how: Accumulation, quick: Compute, nan: Any) -> Callable[..., Any]:
    """Return the function that finds an extreme of a range of a row of floats."""
    combine, load, _ = how

    def reduce_range(x: Any, row: Any, begin: Any, end: Any) -> Any:
        total = load(x[row, begin])
        at = begin
        while at + _LANES <= end:
            stop = min(at + _SEGMENT, end - (end - at) % _LANES)
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = total
            for k in range(at, stop, _LANES):
                s0 = quick(s0, load(x[_at(row), _at(k)]))
                s1 = quick(s1, load(x[_at(row), _at(k + 1)]))
                s2 = quick(s2, load(x[_at(row), _at(k + 2)]))
                s3 = quick(s3, load(x[_at(row), _at(k + 3)]))
                s4 = quick(s4, load(x[_at(row), _at(k + 4)]))
                s5 = quick(s5, load(x[_at(row), _at(k + 5)]))
                s6 = quick(s6, load(x[_at(row), _at(k + 6)]))
                s7 = quick(s7, load(x[_at(row), _at(k + 7)]))
            total = quick(quick(quick(s0, s4), quick(s2, s6)), quick(quick(s1, s5), quick(s3, s7)))
            has_nan = False
            for k in range(at, stop):
                value = load(x[_at(row), _at(k)])
                has_nan = has_nan | (value != value)
            if has_nan:
                return nan
            at = stop
        for k in range(at, end):
            total = combine(total, load(x[_at(row), _at(k)]))
        return total

    return reduce_range


def _start(how: Accumulation, dtype: str) -> Any:
    """Return what no element at all is, as a number of a dtype; None if the first element is the beginning."""
    if how.identity is None:
        return None
    return (numpy.bool_ if dtype == "bool" else cast_to(dtype))(how.identity)


def _reducer(how: Accumulation, name: str, dtype: str) -> Callable[..., Any]:
    """Return the function that reduces a range of a row."""
    kind = numpy.dtype(dtype).kind
    start = _start(how, dtype)
    if kind == "b":
        return _by_truth(how, start)
    if kind in "fc" and start is not None:
        return _by_sums(how, start)
    if kind == "f":
        return _by_extremes(how, _lower if name == "min" else _higher, cast_to(dtype)(numpy.nan))
    return _by_one(how, start)


def rows(name: str, dtype: str, source: str, divides: bool = False) -> Kernel:
    """Return the kernel that reduces ranges of `size` elements of each row of a matrix; `divides`: by `count`."""
    reduce_range = _reducer(accumulation(name, dtype, source), name, dtype)
    cast = cast_to(dtype)

    def function(index: Any, x: Any, size: Any, count: Any, out: Any) -> None:
        row, block = index
        begin = block * size
        total = reduce_range(x, row, begin, min(begin + size, x.shape[1]))
        out[row, block] = total / cast(count) if divides else total

    return finished(function, name, (In, "int64", "float64", Out))


def ones(name: str, dtype: str, source: str) -> Kernel:
    """Return the kernel that reduces one element for each result."""

    def first(index: Any, x: Any, out: Any) -> None:
        out[index] = 0

    if name.startswith("arg"):
        return finished(first, name, (In, Out))
    how = accumulation(name, dtype, source)
    combine, load, _ = how
    start = _start(how, dtype)

    # As of more elements: 0 plus a negative zero is a positive one.
    def begun(index: Any, x: Any, out: Any) -> None:
        out[index] = combine(start, load(x[index]))

    def taken(index: Any, x: Any, out: Any) -> None:
        out[index] = load(x[index])

    return finished(taken if start is None else begun, name, (In, Out))


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


def position(name: str, source: str) -> Kernel:
    """Return the kernel that finds the position of an extreme, from the extremes of ranges of `size` elements."""
    better = _better(name, source)
    load = cast_to("uint8" if source == "bool" else source)

    def function(row: Any, x: Any, extremes: Any, size: Any, out: Any) -> None:
        chosen = 0
        best = load(extremes[row, 0])
        for block in range(1, extremes.shape[1]):
            value = load(extremes[row, block])
            if better(value, best):
                best = value
                chosen = block
        at = chosen * size
        end = min(at + size, x.shape[1]) - 1
        # Neither of two equal elements is better; nor is one of two that are nan.
        while at < end and better(best, load(x[row, at])):
            at += 1
        out[row] = at

    return finished(function, name, (In, In, "int64", Out))


def truths(name: str) -> Kernel:
    """Return the kernel that finds the first extreme truth value in ranges of `size` elements, else gives `none`."""
    wanted = name == "argmax"

    def function(index: Any, x: Any, size: Any, none: Any, out: Any) -> None:
        row, block = index
        at = block * size
        end = min(at + size, x.shape[1])
        found = none
        while at < end:
            stop = min(at + _SEGMENT, end)
            has_one = False
            for k in range(at, stop):
                has_one = has_one | ((x[_at(row), _at(k)] != 0) == wanted)
            if has_one:
                found = at
                while (x[row, found] != 0) != wanted:
                    found += 1
                break
            at = stop
        out[row, block] = found

    return finished(function, name, (In, "int64", "int64", Out))


def earliest(name: str) -> Kernel:
    """Return the kernel that finds the first of the positions in ranges, 0 if each is `none`, which is beyond all."""

    def function(row: Any, positions: Any, none: Any, out: Any) -> None:
        first = none
        for block in range(positions.shape[1]):
            first = min(first, positions[row, block])
        out[row] = 0 if first == none else first

    return finished(function, name, (In, "int64", Out))
