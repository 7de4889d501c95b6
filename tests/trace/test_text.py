"""Timelines as text, and the words that all formats share."""

from __future__ import annotations

import pytest

from anabranch._trace.axis import ticks
from anabranch._trace.operation import Operation
from anabranch._trace.text import text
from anabranch._trace.words import size, time

from .parts import Device, Stream, many, photos

GPU = Device("cuda:0")


def test_photos():
    assert text(photos()).splitlines() == [
        "61 operations on 5 streams of 2 devices in 4.41 ms, 4 waits added",
        "",
        "cuda:0  overlap 54%",
        "  upload      ███████████████████████████████████·····································   47%",
        "  compute     ░░░░░░░░░████████████████████████████████████████████████···············   66%",
        "  download    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒███████▒▒▒▒███████▒▒▒▒▒▒▒▒██████▒▒▒▒▒▒███████········   36%",
        "",
        "cpu:0  overlap 66%",
        "  encode      ░░░░░░░░░░░░░░░░░░░░░░░░░░██████░░░░░██████░░░░░░░░██████░░░░░░░██████··   33%",
        "  0x5581c0de  ··························█████······█████··········█████·······████████   28%",
        "  host        ········································································",
        "              0               1                2               3               4 ms",
        "",
        "█ works   ░ waits   ▒ waits, added by hazards   · has nothing to do",
    ]


def test_no_operations():
    assert text([]) == "no operations: nothing was put into a stream while the trace was on"


def test_one_operation_of_no_length():
    first, *rest = text([Operation("record", "record", Stream(GPU, "s"), GPU, 5.0, 5.0)]).splitlines()
    assert first == "1 operation on 1 stream of 1 device in 0 ms, 0 waits added"
    assert rest[2] == f"  s  {'·' * 72}    0%"


def test_little_is_seen_beside_nothing():
    stream = Stream(GPU, "s")
    operations = [Operation("kernel", "k", stream, GPU, begin, begin + 0.001) for begin in (0.0, 99.999)]
    assert f"  s  █{'·' * 70}█    0%" in text(operations).splitlines()


def test_lanes_are_as_wide_as_each_other():
    lines = text(many(3000)).splitlines()
    assert {len(line) for line in lines if line.endswith("%") and "worker" in line} == {2 + 9 + 2 + 72 + 2 + 4}


def test_labels_are_short_and_of_one_line():
    shown = text([Operation("kernel", "k", Stream(GPU, "one\ntwo" * 20), GPU, 0.0, 1.0)])
    assert len(shown.splitlines()) == 7
    assert "  one twoone twoone t…  █" in shown


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [
        (0, "0 ms"),
        (1, "1 ms"),
        (1.23456, "1.235 ms"),
        (0.5, "500 µs"),
        (2e-4, "200 ns"),
        (12345, "12.35 s"),
        (5e7, "50000 s"),
    ],
)
def test_times(milliseconds, told):
    assert time(milliseconds) == told


@pytest.mark.parametrize(("nbytes", "told"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 50, "1024 TiB")])
def test_sizes(nbytes, told):
    assert size(nbytes) == told


@pytest.mark.parametrize(
    ("begin", "end", "labels"),
    [
        (0.0, 10.0, ["0", "2", "4", "6", "8", "10 ms"]),
        (0.0, 0.001, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0 µs"]),
        (1000.0, 1000.5, ["1.0000", "1.0001", "1.0002", "1.0003", "1.0004", "1.0005 s"]),
        (3.1, 4.9, ["3.5", "4.0", "4.5 ms"]),
    ],
)
def test_ticks(begin, end, labels):
    assert [label for _, label in ticks(begin, end, 6)] == labels
