"""Timelines as pictures."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from anabranch._trace.operation import Operation
from anabranch._trace.svg import WIDTH, svg

from .parts import Device, Recorder, Stream, many, photos

GPU = Device("cuda:0")
SVG = "{http://www.w3.org/2000/svg}"


def picture(operations):
    return ElementTree.fromstring(svg(operations))


def shown(operations, kind=None):
    """Return the elements that stand for operations, of one kind or of all."""
    elements = [element for element in picture(operations).iter() if "data-kind" in element.attrib]
    return [element for element in elements if kind in (None, element.get("data-kind"))]


def texts(operations):
    return [element.text for element in picture(operations).iter(f"{SVG}text")]


def box(element):
    return [float(element.get(name)) for name in ("x", "y", "width", "height")]


def ends(path):
    """Return the first and the last place of an arrow."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
    return numbers[:2], numbers[-2:]


def test_no_operations():
    assert texts([]) == ["no operations"]


def test_every_operation_is_there_once():
    elements = shown(photos())
    kinds = [element.get("data-kind") for element in elements for _ in range(int(element.get("data-count", "1")))]
    assert sorted(kinds) == sorted(one.kind for one in photos())
    assert all(element.find(f"{SVG}title") is not None for element in elements)


def test_lanes_devices_and_what_they_did_are_labelled():
    labels = [text for text in texts(photos()) if text]
    for label in ("cuda:0", "cpu:0", "upload", "0x5581c0de", "47% busy", "blur_rows", "added wait", "4.0 ms"):
        assert label in labels or label in "".join(picture(photos()).itertext())
    assert labels[0] == "61 operations on 5 streams of 2 devices in 4.41 ms, 4 waits added"


def test_a_title_tells_all_of_an_operation():
    source = Operation("kernel", "blur", Stream(GPU, "one"), GPU, 0.0, 1.25)
    wait = Operation("wait", "wait", Stream(GPU, "two"), GPU, 0.5, 1.25, "a.py", 7, added=True, source=source)
    copy = Operation("copy", "copy", Stream(GPU, "two"), GPU, 1.25, 1.26, "a.py", 8, nbytes=3 << 20)
    alloc = Operation("alloc", "alloc", None, GPU, 0.5, 0.5, nbytes=100)
    titles = [element.findtext(f"{SVG}title") for element in shown([source, wait, copy, alloc])]
    assert titles == [
        "kernel blur\none of cuda:0\n0.000 to 1.250 ms, 1.25 ms",
        "added wait for blur of one\ntwo of cuda:0\n0.500 to 1.250 ms, 750 µs\na.py:7",
        "copy\ntwo of cuda:0\n1.250000 to 1.260000 ms, 10 µs\n3 MiB\na.py:8",
        "alloc\nhost of cuda:0\nat 0.500 ms\n100 B",
    ]


def test_places_are_times():
    one, other = Stream(GPU, "one"), Stream(GPU, "other")
    operations = [
        Operation("kernel", "k", one, GPU, 0.0, 1.0),
        Operation("kernel", "k", one, GPU, 1.0, 4.0),
        Operation("copy", "copy", other, GPU, 3.0, 4.0),
    ]
    first, second, third = map(box, shown(operations))
    per_ms = (third[0] - first[0]) / 3
    assert first[2] == pytest.approx(per_ms, abs=1)
    assert second[0] == pytest.approx(first[0] + per_ms, abs=0.1)
    assert second[2] == pytest.approx(3 * per_ms, abs=1)
    assert first[1] == second[1] < third[1]


def test_arrows_lead_from_the_end_of_a_source_to_the_end_of_its_wait():
    record = Recorder()
    one, other = Stream(GPU, "one"), Stream(GPU, "other")
    work = record.add("kernel", one, 1.0)
    record.add("kernel", one, 1.0)
    record.wait(other, work, added=True)
    record.add("copy", other, 1.0)
    (arrow,) = [path for path in picture(record.operations).iter(f"{SVG}path") if "arrow" in path.get("class", "")]
    source, after, wait, _ = map(box, shown(record.operations))
    start, stop = ends(arrow)
    assert arrow.get("class") == "arrow for-added"
    assert start == pytest.approx([after[0], source[1] + source[3]], abs=0.1)
    assert stop == pytest.approx([wait[0] + wait[2], wait[1]], abs=1)


def test_added_waits_look_different():
    assert {wait.get("class") for wait in shown(photos(), "wait")} == {"wait", "added"}


@pytest.mark.parametrize("kind", ["kernel", "wait", "record"])
def test_one_operation_of_no_length(kind):
    (element,) = shown([Operation(kind, kind, Stream(GPU, "s"), GPU, 5.0, 5.0)])
    assert element.get("data-kind") == kind
    assert "nan" not in svg([Operation(kind, kind, Stream(GPU, "s"), GPU, 5.0, 5.0)])


def test_names_stay_inside_their_blocks():
    operation = Operation("kernel", "a_very_long_name_of_a_kernel" * 20, Stream(GPU, "stream" * 20), GPU, 0.0, 1.0)
    name, label = texts([operation])[-2], texts([operation])[-4]
    assert len(name) * 6 < WIDTH
    assert name.endswith("…")
    assert label is None or len(label) < 30


def test_any_text_is_escaped():
    name = "<b>&\"'\x00\udc80é"
    operation = Operation("host", name, Stream(GPU, name), GPU, 0.0, 1.0, f"{name}.py", 1)
    title = shown([operation])[0].findtext(f"{SVG}title")
    assert title.startswith("host <b>&\"'\ufffd\ufffdé\n")


def test_the_same_operations_give_the_same_picture():
    assert svg(photos()) == svg(photos())


def test_size_grows_with_the_operations():
    small, large = len(svg(many(1000))), len(svg(many(4000)))
    assert large < 4.5 * small
    assert large < 4000 * 400


def test_it_loads_nothing():
    assert re.findall(r"https?:[^\"]*", svg(photos())) == ["http://www.w3.org/2000/svg"]


def test_marks_that_would_lie_on_each_other_are_one():
    stream = Stream(GPU, "s")
    operations = [Operation("alloc", "alloc", stream, GPU, n * 1e-3, n * 1e-3, nbytes=1 << 20) for n in range(5)]
    operations.append(Operation("kernel", "k", stream, GPU, 1.0, 2.0))
    (mark,) = shown(operations, "alloc")
    assert mark.get("data-count") == "5"
    assert mark.findtext(f"{SVG}title").startswith("5 of alloc, 5 MiB\nalloc\n")


def test_a_long_gap_is_folded_and_the_compilation_in_it_is_labelled():
    stream = Stream(GPU, "s")
    compiled = Operation("compile", "saxpy", None, GPU, 0.0, 500.0, "a.py", 7)
    kernel = Operation("kernel", "saxpy", stream, GPU, 500.0, 510.0)
    block, work = map(box, shown([compiled, kernel]))
    assert work[2] > 5 * block[2]
    assert block[2] > 60
    found = texts([compiled, kernel])
    assert {"compile saxpy", "saxpy", "compile"} <= set(found)
    assert [gap.get("width") for gap in picture([compiled, kernel]).iter() if gap.get("class") == "gap"]
    assert "500 ms" in "".join(picture([compiled, kernel]).itertext())


def test_overlap_is_explained():
    words = [text for text in texts(photos()) if text and text.startswith("overlap")]
    assert words[0] == "overlap 54% of the time in which the device was busy, two or more of its streams were"


def test_labels_of_the_axis_do_not_lie_on_each_other():
    stream = Stream(GPU, "s")
    work = [Operation("kernel", "k", stream, GPU, 1000.0 * n, 1000.0 * n + 1) for n in range(8)]
    labels = sorted(
        (float(text.get("x")), len(text.text)) for text in picture(work).iter(f"{SVG}text") if text.get("y") == "53"
    )
    assert len(labels) > 4
    for (x, length), (following, other) in pairwise(labels):
        assert following - x > 6 * (length + other) / 2
    gaps = [element for element in picture(work).iter() if element.get("class") == "gap"]
    assert [gap.findtext(f"{SVG}title") for gap in gaps] == ["no stream is busy for 999 ms; shown short"] * 7


@pytest.mark.parametrize(("streams", "height"), [(1, 80), (3, 76), (20, 34)])
def test_few_lanes_are_high(streams, height):
    operations = [Operation("kernel", "k", Stream(GPU, f"s{n}"), GPU, 0.0, 1.0) for n in range(streams)]
    lanes = [element for element in picture(operations).iter() if element.get("class") == "lane"]
    assert {float(lane.get("height")) for lane in lanes} == {float(height)}
