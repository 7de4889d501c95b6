"""Timelines as pages, in a browser."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from anabranch._trace.operation import Operation
from anabranch._trace.page import page
from anabranch._trace.words import describe

from .parts import LANES, Device, Stream, many, photos

GPU = Device("cuda:0")

# The browser does the same with a page, whichever interpreter wrote it.
pytestmark = pytest.mark.source


def data(operations):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page(operations), re.DOTALL)
    return json.loads(found)


def test_it_loads_nothing():
    assert "http:" not in page(photos())
    assert "https:" not in page(photos())
    assert "src=" not in page(photos())
    assert "url(" not in page(photos())
    assert "default-src 'none'" in page(photos())


def test_it_holds_every_operation():
    shown = data(photos())
    assert Counter(one["kind"] for one in shown["operations"]) == Counter(one.kind for one in photos())
    added = [one for one in shown["operations"] if one.get("added")]
    assert [one["line"] for one in added] == [41] * 4
    for wait in added:
        source = shown["operations"][wait["source"]]
        assert (source["name"], shown["lanes"][source["lane"]]["label"]) == ("sharpen", "compute")
    assert shown["devices"] == [
        {"alias": "cuda:0", "overlap": pytest.approx(0.54, abs=0.01)},
        {"alias": "cpu:0", "overlap": pytest.approx(0.66, abs=0.01)},
    ]


def test_no_text_ends_the_data():
    name = "</script><!--<script>{{data}}\udc80"
    (operation,) = data([Operation("host", name, Stream(GPU, "s"), GPU, 0.0, 1.0)])["operations"]
    assert operation["name"] == name


def test_it_shows_lanes_and_operations(browser):
    answer = browser.ask(
        page(photos()),
        """return {
          lanes: t.lanes.map((lane) => `${lane.device} ${lane.label}`),
          operations: t.operations.length,
          kinds: [...document.querySelectorAll("#legend button")].map((button) => button.textContent),
          overlap: [...document.querySelectorAll("#overlap li")].map((item) => item.textContent),
          arrows: document.getElementById("chart").dataset.arrows,
          title: document.title,
        }""",
    )
    assert answer == {
        "lanes": [" ".join(lane) for lane in LANES],
        "operations": 61,
        "kinds": ["kernel", "copy", "fill", "host", "graph", "wait", "added wait", "record", "alloc", "free"],
        "overlap": ["cuda:0overlap 54%", "cpu:0overlap 66%"],
        "arrows": "12",
        "title": "Timeline: 61 operations on 5 streams of 2 devices in 4.41 ms, 4 waits added",
    }


def test_no_operations(browser):
    script = """key("ArrowRight"); key("+"); pointer("pointermove", {x: 300, y: 50}); t.draw();
      return [t.lanes.length, t.operations.length, t.operationAt(300, 50)]"""
    assert browser.ask(page([]), script) == [0, 0, None]


@pytest.mark.parametrize("kind", ["kernel", "wait", "record"])
def test_one_operation_of_no_length(browser, kind):
    operation = Operation(kind, kind, Stream(GPU, "s"), GPU, 5.0, 5.0, "a.py", 3)
    script = "const {x, y} = t.placeOf(t.operations[0]); return t.describe(t.operationAt(x, y))"
    assert browser.ask(page([operation]), script) == describe(operation).split("\n")


def test_every_operation_is_told_as_in_the_other_formats(browser):
    operations = sorted(
        "\n".join(lines) for lines in browser.ask(page(photos()), "return t.operations.map(t.describe)")
    )
    assert operations == sorted(map(describe, photos()))


def test_the_source_line_is_told_beside_the_pointer(browser):
    script = """
      const told = {};
      for (const name of ["blur_rows", "write_jpeg", "histogram"]) {
        const operation = t.operations.find((operation) => operation.name === name);
        pointer("pointermove", t.placeOf(operation));
        told[name] = tip();
      }
      pointer("pointermove", {x: 2, y: 2});
      return [told, tip()];
    """
    told, nothing = browser.ask(page(photos()), script)
    assert nothing is None
    assert told["blur_rows"].split("\n")[0] == "kernel blur_rows"
    assert {name: text.split("\n")[-1] for name, text in told.items()} == {
        "blur_rows": "examples/photos.py:33",
        "write_jpeg": "examples/photos.py:46",
        "histogram": "examples/photos.py:36",
    }


def test_marks_lie_on_top_of_blocks(browser):
    script = """const record = t.operations.filter((one) => one.lane === 0 && one.kind === "record").at(-1);
      const {x, y} = t.placeOf(record);
      return [t.operationAt(x + 1, y).kind, t.operationAt(x - 30, y).kind, t.operationAt(x, 5)]"""
    assert browser.ask(page(photos()), script) == ["record", "copy", None]


def test_the_wheel_zooms_where_the_pointer_is(browser):
    script = """
      const chart = document.getElementById("chart"), top = chart.getBoundingClientRect().top;
      const place = t.placeOf(t.operations.find((operation) => operation.name === "histogram"));
      const before = t.view.end - t.view.begin, at = {clientX: place.x, clientY: place.y + top, bubbles: true};
      chart.dispatchEvent(new WheelEvent("wheel", {...at, deltaY: -600, cancelable: true}));
      t.draw();
      const zoomed = t.view.end - t.view.begin, there = t.operationAt(place.x, place.y).name;
      chart.dispatchEvent(new WheelEvent("wheel", {...at, deltaY: 9000, cancelable: true}));
      return [zoomed / before, there, (t.view.end - t.view.begin) / before];
    """
    zoomed, there, whole = browser.ask(page(photos()), script)
    assert zoomed == pytest.approx(0.4066, abs=0.001)
    assert (there, whole) == ("histogram", pytest.approx(1))


def test_dragging_moves_and_clicking_keeps(browser):
    script = """
      document.getElementById("chart").setPointerCapture = () => {};  // there is no such pointer
      t.show(1, 2);
      pointer("pointerdown", {x: 500, y: 90});
      pointer("pointermove", {x: 400, y: 90});
      pointer("pointerup", {x: 400, y: 90});
      const moved = t.view.begin - 1, kept = tip();
      const place = t.placeOf(t.operations.find((operation) => operation.name === "histogram"));
      pointer("pointerdown", place);
      pointer("pointerup", place);
      pointer("pointermove", {x: 2, y: 2});
      return [moved, t.view.end - t.view.begin, kept, tip()];
    """
    moved, shown, dragged, clicked = browser.ask(page(photos()), script)
    assert 0.05 < moved < 0.15
    assert (shown, dragged) == (pytest.approx(1), None)
    assert clicked.startswith("graph histogram\n")


def test_keys_step_through_operations(browser):
    script = """
      const seen = [];
      for (const name of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp", "Escape"]) {
        key(name);
        seen.push(tip()?.split("\\n").slice(0, 2).join(", ") ?? null);
      }
      key("+");
      const zoomed = t.view.end - t.view.begin;
      key("0");
      return [seen, zoomed < t.view.end - t.view.begin];
    """
    seen, zoomed = browser.ask(page(photos()), script)
    assert seen == [
        "alloc, upload of cuda:0",
        "copy, upload of cuda:0",
        "wait for record of upload, compute of cuda:0",
        "kernel to_linear, compute of cuda:0",
        "wait for record of upload, compute of cuda:0",
        "alloc, upload of cuda:0",
        None,
    ]
    assert zoomed


def test_what_is_searched_is_counted_and_what_is_switched_off_is_gone(browser):
    script = """
      const found = () => document.getElementById("found").textContent;
      const counts = ["blur", "PHOTOS.PY:46", "added wait", "nothing", ""].map((text) => (t.find(text), found()));
      t.draw();
      const place = t.placeOf(t.operations.find((operation) => operation.kind === "copy"));
      const before = t.operationAt(place.x, place.y).kind;
      document.querySelector("#legend [data-kind=copy]").click();
      t.draw();
      return [counts, before, t.operationAt(place.x, place.y)];
    """
    counts, before, after = browser.ask(page(photos()), script)
    assert counts == ["4 found", "4 found", "4 found", "0 found", ""]
    assert (before, after) == ("copy", None)


def test_twenty_thousand_operations_move_smoothly(browser):
    script = """
      const chart = document.getElementById("chart"), all = t.view.end, start = performance.now();
      let draws = 0;
      for (let shown = all; shown > 1e-3; shown /= 1.5, draws++) {
        t.show(0.4 * all, 0.4 * all + shown);
        t.draw();
        t.operationAt(500, 200);
      }
      t.show(0, all);
      t.draw();
      const colours = new Set(chart.getContext("2d").getImageData(200, 0, 500, 300).data);  // waits for the drawing
      const took = (performance.now() - start) / draws;
      t.show(0.4 * all, 0.4 * all + 0.2);
      t.draw();
      const arrows = Number(chart.dataset.arrows);
      t.select(t.operations[12345]);
      return [t.operations.length, colours.size > 20, arrows > 0, tip(), took];
    """
    operations = many(20_000)
    number, drawn, arrows, tip, took = browser.ask(page(operations), script)
    assert (number, drawn, arrows) == (20_000, True, True)
    assert data(operations)["operations"][12345]["name"] in tip
    assert took < 100  # ms; a tenth of it where nothing else runs


def test_many_lanes_scroll(browser):
    operations = [Operation("kernel", f"k{n}", Stream(GPU, f"s{n}", n), GPU, 0.0, 1.0) for n in range(600)]
    script = """
      t.select(t.operations[599]);
      t.draw();
      const place = t.placeOf(t.operations[599]);
      return [place.y < document.getElementById("chart").clientHeight, t.operationAt(place.x, place.y).name];
    """
    assert browser.ask(page(operations), script) == [True, "k599"]


def test_a_long_gap_is_folded_until_the_reader_unfolds_it(browser):
    stream = Stream(GPU, "s")
    operations = [
        Operation("compile", "saxpy", None, GPU, 0.0, 500.0, "a.py", 7),
        Operation("kernel", "saxpy", stream, GPU, 500.0, 510.0),
        Operation("kernel", "saxpy", stream, GPU, 2510.0, 2520.0),
    ]
    script = """
      const widths = () => t.operations.map((one) => t.xOf(one.end) - t.xOf(one.begin));
      const here = () => t.operations.map((one) => { const { x, y } = t.placeOf(one); return t.operationAt(x, y); });
      const folded = widths(), found = here().every((one, index) => one === t.operations[index]);
      key("g");
      t.draw();
      const unfolded = widths();
      key("g");
      t.draw();
      return [folded, unfolded, widths(), found, t.operations.map((one) => t.describe(one)[0])];
    """
    folded, unfolded, again, found, titles = browser.ask(page(operations), script)
    assert folded[1] == pytest.approx(folded[2])
    assert folded[1] > 2 * folded[0] > 100  # pixels
    assert unfolded[0] == pytest.approx(50 * unfolded[1])
    assert again == pytest.approx(folded)
    assert found
    assert titles == ["compile saxpy", "kernel saxpy", "kernel saxpy"]


def test_few_lanes_fill_the_height(browser):
    operation = Operation("kernel", "k", Stream(GPU, "s"), GPU, 0.0, 1.0)
    script = "const { y } = t.placeOf(t.operations[0]); return [y, t.operationAt(600, y + 40)?.name]"
    y, name = browser.ask(page([operation]), script)
    assert y > 100
    assert name == "k"


def test_overlap_is_explained(browser):
    words = browser.ask(page(photos()), 'return document.getElementById("explained").textContent')
    assert words == "overlap: of the time in which a device was busy, two or more of its streams were"
