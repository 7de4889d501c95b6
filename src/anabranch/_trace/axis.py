"""The time axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from anabranch._trace.operation import Operation
from anabranch._trace.words import unit

NOTHING = 1e-3
"""Length of the time axis in ms if all operations together take no time."""


def extent(operations: Sequence[Operation]) -> tuple[float, float]:
    """Return when the first operation begins and the last one ends, in ms; the two always differ."""
    begin = min((operation.begin for operation in operations), default=0.0)
    end = max((operation.end for operation in operations), default=0.0)
    return (begin, end) if end - begin > NOTHING / 1e3 else (begin, begin + NOTHING)


def ticks(begin: float, end: float, most: int) -> list[tuple[float, str]]:
    """Return at most `most` round times between two times, in ms, each with its label; the last label has the unit."""
    step = 10 ** floor(log10((end - begin) / most))
    step = next(
        step * factor
        for factor in (1, 2, 5, 10, 20)
        if floor(end / (step * factor)) - ceil(begin / (step * factor)) < most
    )
    name, size = unit(max(step * 10, end))
    decimals = max(0, ceil(-log10(step / size) - 1e-9))
    places = [number * step for number in range(ceil(begin / step), floor(end / step) + 1)]
    labels = [f"{place / size:.{decimals}f}" for place in places]
    return [
        (place, f"{label} {name}" if place is places[-1] else label)
        for place, label in zip(places, labels, strict=True)
    ]
