"""The time axis, and what of it is folded."""

from __future__ import annotations

import pytest

from anabranch._trace.axis import folded, ticks_between
from anabranch._trace.operation import Operation

from .parts import Device, Stream, many, photos

GPU = Device("cuda:0")
STREAM = Stream(GPU, "s")


def work(begin, end, kind="kernel"):
    return Operation(kind, kind, STREAM, GPU, begin, end)


@pytest.mark.parametrize("operations", [photos(), many(100), [], [work(0, 1)], [work(0, 0)], [work(0, 9, "wait")]])
def test_without_long_gaps_nothing_is_folded(operations):
    axis = folded(operations)
    assert axis.gaps == []
    assert axis.place(axis.end) == pytest.approx(axis.end - axis.begin)


def test_gaps_are_long_compared_with_the_work():
    axis = folded([work(0, 10), work(12, 22), work(100, 110), work(111, 121)])
    assert [(gap.begin, gap.end) for gap in axis.gaps] == [(22, 100)]
    assert axis.place(22) == 22
    assert axis.place(61) == pytest.approx(22 + axis.gaps[0].shown / 2)
    assert axis.place(121) - axis.place(100) == pytest.approx(21)
    assert axis.gaps[0].shown < 5


def test_waits_and_moments_fill_no_gap():
    axis = folded([work(0, 1), work(1, 1000, "wait"), work(500, 500, "record"), work(1000, 1001)])
    assert [(gap.begin, gap.end) for gap in axis.gaps] == [(1, 1000)]


def test_what_comes_before_and_after_the_work_is_a_gap_too():
    axis = folded([work(0, 0, "record"), work(100, 101), work(900, 900, "free")])
    assert [(gap.begin, gap.end) for gap in axis.gaps] == [(0, 100), (101, 900)]


def test_many_gaps_take_no_more_room_than_the_work():
    axis = folded([work(1000 * number, 1000 * number + 1) for number in range(200)])
    assert len(axis.gaps) == 199
    assert axis.length < 2 * 200


def test_no_tick_lies_in_a_gap():
    axis = folded([work(0, 10), work(500, 510)])
    places = [place for place, _ in ticks_between(axis, 10)]
    assert len(places) > 5
    assert all(place <= 10 or 500 <= place <= 510 for place in places)
    assert ticks_between(axis, 10)[-1][1] == "510 ms"
