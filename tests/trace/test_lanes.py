"""Operations as lanes, and how much of them overlaps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anabranch as ab
from anabranch._trace.lanes import Lane, lanes, nested
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import overlap

from .parts import LANES, Device, Recorder, Stream, photos

GPU, CPU = Device("cuda:0"), Device("cpu:0")


def operation(stream, begin, end, kind="kernel", **fields):
    return Operation(kind, kind, stream, fields.pop("device", None) or stream.device, begin, end, **fields)


def test_a_lane_is_a_stream():
    shown = [(lane.device.alias, lane.label) for lane in lanes(photos())]
    assert shown == LANES
    assert sum(len(lane.operations) for lane in lanes(photos())) == len(photos())


def test_a_stream_that_was_closed_has_its_label():
    stream = ab.Stream("cpu")
    label = f"{stream.handle:#x}"
    operations = [operation(stream, 0, 1)]
    stream.close()
    assert [lane.label for lane in lanes(operations)] == [label]


def test_no_operations_have_no_lanes():
    assert lanes([]) == []
    assert overlap([]) == {}


def test_lanes_of_a_device_stand_together():
    streams = [Stream(GPU, "a"), Stream(CPU, "b"), Stream(GPU, "c")]
    assert [lane.label for lane in lanes([operation(stream, 0, 1) for stream in streams])] == ["a", "c", "b"]


def test_streams_of_one_name_have_a_lane_each():
    record = Recorder()
    record.add("kernel", Stream(GPU, "work", 1), 1.0)
    record.add("kernel", Stream(GPU, "work", 2), 1.0)
    assert [lane.label for lane in lanes(record.operations)] == ["work", "work"]


def test_a_lane_is_in_the_order_of_time():
    stream = Stream(GPU, "a")
    later, sooner = operation(stream, 2, 3), operation(stream, 0, 1)
    (lane,) = lanes([later, sooner])
    assert list(lane.operations) == [sooner, later]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 1), (1, 2)], [(0, 1), (1, 2)]),
        ([(0, 1.5), (1, 2)], [(0, 1), (1, 2)]),  # the first one ends where the second begins
        ([(0, 3), (1, 2)], [(0, 3), (1, 2)]),
        ([(0, 1), (0, 2)], [(0, 1), (1, 2)]),
        ([(0, 10), (5, 7), (6, 12)], [(0, 6), (5, 6), (6, 12)]),
        ([(1, 1), (1, 2), (2, 2)], [(1, 1), (1, 2), (2, 2)]),
    ],
)
def test_slices_are_made_to_nest(spans, expected):
    stream = Stream(GPU, "a")
    (lane,) = lanes([operation(stream, *span) for span in spans])
    assert [(begin / 1e6, end / 1e6) for _, begin, end in nested(lane)] == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12))
def test_any_slices_are_made_to_nest(spans):
    stream = Stream(GPU, "a")
    made = sorted((operation(stream, *sorted(span)) for span in spans), key=lambda one: one.begin)
    slices = nested(Lane(GPU, stream, "a", made))
    assert [one for one, *_ in slices] == made
    for position, (_, begin, end) in enumerate(slices):
        assert begin <= end
        for _, its_begin, its_end in slices[position + 1 :]:
            apart = end <= its_begin or its_end <= begin
            assert apart or (begin <= its_begin and its_end <= end)


@pytest.mark.parametrize(
    ("of_a", "of_b", "share"),
    [
        ([(0, 1)], [(1, 2)], 0.0),
        ([(0, 1)], [(0, 1)], 1.0),
        ([(0, 2)], [(1, 3)], 1 / 3),
        ([(0, 4)], [(1, 2), (3, 4)], 0.5),
        ([(0, 2), (1, 3)], [], 0.0),  # one stream is not several, even where its operations overlap
        ([(0, 2), (1, 3)], [(2, 4)], 0.25),
        ([(0, 1), (5, 6)], [(0, 1)], 0.5),  # idle time does not count
        ([(1, 1)], [(1, 1)], 0.0),
    ],
)
def test_overlap(of_a, of_b, share):
    a, b = Stream(GPU, "a"), Stream(GPU, "b")
    operations = [operation(a, *span) for span in of_a] + [operation(b, *span) for span in of_b]
    assert overlap(operations) == {GPU: pytest.approx(share)}


@pytest.mark.parametrize("kind", ["wait", "record", "alloc", "free"])
def test_what_keeps_no_stream_busy_overlaps_with_nothing(kind):
    operations = [operation(Stream(GPU, "a"), 0, 1), operation(Stream(GPU, "b"), 0, 1, kind)]
    assert overlap(operations) == {GPU: 0.0}
    assert overlap(operations[1:]) == {GPU: 0.0}


@pytest.mark.parametrize("kind", ["kernel", "copy", "fill", "host", "graph"])
def test_what_keeps_a_stream_busy_overlaps(kind):
    operations = [operation(Stream(GPU, "a"), 0, 1), operation(Stream(GPU, "b"), 0.5, 1, kind)]
    assert overlap(operations) == {GPU: 0.5}


def test_devices_overlap_by_themselves():
    operations = [operation(Stream(GPU, "a"), 0, 1), operation(Stream(CPU, "b"), 0, 1)]
    assert overlap(operations) == {GPU: 0.0, CPU: 0.0}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 30)), max_size=15),
)
def test_overlap_is_what_counting_gives(parts):
    streams = [Stream(GPU, name) for name in "abc"]
    spans = [(streams[number], *sorted(ends)) for number, *ends in parts]
    busy = [len({stream for stream, begin, end in spans if begin <= moment < end}) for moment in range(30)]
    some, several = sum(map(bool, busy)), sum(number > 1 for number in busy)
    shares = overlap([operation(*span) for span in spans])
    assert shares == ({GPU: pytest.approx(several / some if some else 0.0)} if spans else {})
