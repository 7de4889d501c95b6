"""Whether two arrays of one dimension share elements, in kernels on a CPU.

NumPy copies an array before it changes another with which it shares elements. A kernel has no memory for that: it goes
through the elements in the order in which each is read before it changes, or fails.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import cgutils


class Row(NamedTuple):
    """An array of one dimension: the address of its first element, their number, and their distance in bytes."""

    data: Any
    size: Any
    stride: Any


def row_of(context: Any, builder: Any, kind: Any, value: Any) -> Row:
    """Return an array of one dimension, of this type."""
    array = context.make_array(kind)(context, builder, value)
    return Row(array.data, builder.extract_value(array.shape, 0), builder.extract_value(array.strides, 0))


class Overlap(NamedTuple):
    """How elements are shared, as LLVM values.

    Attributes
    ----------
    shares : i1
        Whether one array has elements of the other at other places.
    is_shifted : i1
        Whether their elements have the same distance.
    is_ahead : i1
        Whether the changed array begins at a later element of the other, if they have the same distance.
    """

    shares: Any
    is_shifted: Any
    is_ahead: Any


def overlap_of(builder: Any, changed: Row, other: Row) -> Overlap:
    """Return how an array that changes shares elements with another of the same size, or of size 1."""
    word = changed.size.type
    zero, one = word(0), word(1)
    is_repeated = builder.icmp_signed("==", other.size, one)
    other = Row(other.data, changed.size, builder.select(is_repeated, zero, other.stride))
    starts = [builder.ptrtoint(row.data, word) for row in (changed, other)]
    ends = []
    for start, row in zip(starts, (changed, other), strict=True):
        last = builder.add(start, builder.mul(builder.sub(row.size, one), row.stride))
        descends = builder.icmp_signed("<", row.stride, zero)
        ends.append((builder.select(descends, last, start), builder.select(descends, start, last)))
    (low, high), (other_low, other_high) = ends
    meets = builder.and_(builder.icmp_unsigned("<=", low, other_high), builder.icmp_unsigned("<=", other_low, high))
    is_shifted = builder.icmp_signed("==", changed.stride, other.stride)
    distance = builder.sub(*starts)
    shares = cgutils.alloca_once_value(builder, cgutils.false_bit)
    with builder.if_then(builder.and_(meets, builder.icmp_signed(">", changed.size, one)), likely=False):
        step = builder.select(builder.icmp_signed("==", changed.stride, zero), one, changed.stride)
        is_between = builder.icmp_signed("!=", builder.srem(distance, step), zero)
        is_same = builder.icmp_signed("==", distance, zero)
        apart = builder.and_(is_shifted, builder.or_(is_between, is_same))
        builder.store(builder.not_(apart), shares)
    is_later = builder.icmp_signed(">", distance, zero)
    is_ahead = builder.select(
        builder.icmp_signed(">", changed.stride, zero), is_later, builder.icmp_signed("<", distance, zero)
    )
    return Overlap(builder.load(shares), is_shifted, is_ahead)
