"""The time axis. Long times in which no stream is busy are folded: they take little room, whatever they last."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from anabranch._trace.lanes import BUSY
from anabranch._trace.operation import Operation
from anabranch._trace.words import unit

NOTHING = 1e-3
"""Length of the time axis in ms if all operations together take no time."""

LONG = 0.25  # of the time in which a stream is busy or soon will be: a longer gap is folded
ROOM = 0.06  # of that time, which a folded gap is shown as
LABELLED = 0.14  # likewise, of a gap in which a kernel is compiled
MANY = 8  # with more gaps each takes less room


class Gap(NamedTuple):
    """A folded gap: begin and end, and the length that it is shown as, in ms."""

    begin: float
    end: float
    shown: float


class Axis:
    """Maps times to positions on an axis from 0 to `length`, in ms without the folded time.

    Attributes
    ----------
    begin, end : float
        The first and the last time.
    gaps : list of Gap
        In order, and disjoint.
    length : float
    """

    def __init__(self, begin: float, end: float, gaps: Sequence[Gap] = ()) -> None:
        self.begin, self.end, self.gaps = begin, end, list(gaps)
        self._times, self._places, self._slopes = [begin], [0.0], [1.0]
        for gap in self.gaps:
            self._add(gap.begin, gap.shown / (gap.end - gap.begin))
            self._add(gap.end, 1.0)
        self.length = self.place(end)

    def _add(self, time: float, slope: float) -> None:
        self._places.append(self.place(time))
        self._times.append(time)
        self._slopes.append(slope)

    def place(self, time: float) -> float:
        """Return the position of a time."""
        segment = max(0, bisect_right(self._times, time) - 1)
        return self._places[segment] + (time - self._times[segment]) * self._slopes[segment]


def extent(operations: Sequence[Operation]) -> tuple[float, float]:
    """Return when the first operation begins and the last one ends, in ms; the two always differ."""
    begin = min((operation.begin for operation in operations), default=0.0)
    end = max((operation.end for operation in operations), default=0.0)
    return (begin, end) if end - begin > NOTHING / 1e3 else (begin, begin + NOTHING)


def folded(operations: Sequence[Operation]) -> Axis:
    """Return the axis of operations, with the long gaps folded: before, between and after what streams are busy with.

    Waits, moments and compilations lie within a gap; the room of a compilation is enough for a word.
    """
    begin, end = extent(operations)
    spans = sorted((one.begin, one.end) for one in operations if one.kind in BUSY and one.end > one.begin)
    if not spans:
        return Axis(begin, end)
    between: list[tuple[float, float]] = []
    until = begin
    for first, last in spans:
        if first > until:
            between.append((until, first))
        until = max(until, last)
    between.append((until, end))
    busy = end - begin - sum(last - first for first, last in between)
    # Short gaps belong to the work; they count for what is long.
    for length in sorted(last - first for first, last in between):
        if length > LONG * busy:
            break
        busy += length
    long = [(first, last) for first, last in between if last - first > LONG * busy]
    compiled = [(one.begin, one.end) for one in operations if one.kind == "compile"]
    less = min(1.0, MANY / max(1, len(long)))
    gaps = []
    for first, last in long:
        labelled = any(since < last and to > first for since, to in compiled)
        gaps.append(Gap(first, last, busy * less * (LABELLED if labelled else ROOM)))
    return Axis(begin, end, gaps)


def ticks(begin: float, end: float, most: int) -> list[tuple[float, str]]:
    """Return at most `most` round times between two times, in ms, each with its label; the last label has the unit."""
    step = 10 ** floor(log10((end - begin) / most))
    step = next(
        step * factor
        for factor in (1, 2, 5, 10, 20)
        if floor(end / (step * factor)) - ceil(begin / (step * factor)) < most
    )
    return _labelled([number * step for number in range(ceil(begin / step), floor(end / step) + 1)], step, end)


def ticks_between(axis: Axis, most: int) -> list[tuple[float, str]]:
    """Return round times as `ticks` does, as dense as `most` of them over the whole axis, and none in a folded gap."""
    if not axis.gaps:
        return ticks(axis.begin, axis.end, most)
    least = axis.length / most
    step = 10 ** floor(log10(least))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor >= least)
    starts = [axis.begin, *(gap.end for gap in axis.gaps)]
    stops = [*(gap.begin for gap in axis.gaps), axis.end]
    places = [
        number * step
        for start, stop in zip(starts, stops, strict=True)
        for number in range(ceil(start / step), floor(stop / step) + 1)
    ]
    return _labelled(places, step, axis.end)


def _labelled(places: Sequence[float], step: float, end: float) -> list[tuple[float, str]]:
    name, size = unit(max(step * 10, end))
    decimals = max(0, ceil(-log10(step / size) - 1e-9))
    labels = [f"{place / size:.{decimals}f}" for place in places]
    return [
        (place, f"{label} {name}" if place is places[-1] else label)
        for place, label in zip(places, labels, strict=True)
    ]
