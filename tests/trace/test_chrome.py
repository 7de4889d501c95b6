"""Timelines as JSON of the Trace Event Format."""

from __future__ import annotations

import json

import pytest

from anabranch._trace.chrome import chrome
from anabranch._trace.operation import Operation

from .parts import PHOTOS, Device, Recorder, Stream, many, photos

GPU = Device("cuda:0")


def events(operations):
    document = json.loads(chrome(operations))
    assert set(document) == {"traceEvents", "displayTimeUnit"}
    assert document["displayTimeUnit"] == "ms"
    return document["traceEvents"]


def of_phase(operations, phase):
    return [event for event in events(operations) if event["ph"] == phase]


def test_no_operations():
    assert events([]) == []


def test_devices_are_processes_and_streams_threads():
    named = {}
    for event in of_phase(photos(), "M"):
        named.setdefault(event["name"], []).append((event["pid"], event["tid"], *event["args"].values()))
    assert named["process_name"] == [(1, 0, "cuda:0"), (2, 0, "cpu:0")]
    assert named["process_sort_index"] == [(1, 0, 1), (2, 0, 2)]
    threads = [(1, "upload"), (1, "compute"), (1, "download"), (2, "encode"), (2, "0x5581c0de"), (2, "host")]
    assert named["thread_name"] == [(pid, tid, name) for tid, (pid, name) in enumerate(threads, 1)]
    assert [index for *_, index in named["thread_sort_index"]] == [1, 2, 3, 4, 5, 6]


def test_an_operation_is_a_complete_event():
    operation = Operation("copy", "copy", Stream(GPU, "s"), GPU, 1.5, 1.75, "a.py", 7, nbytes=64)
    (event,) = of_phase([operation], "X")
    args = {"file": "a.py", "line": 7, "nbytes": 64, "stream": "s"}
    whole = {"ph": "X", "pid": 1, "tid": 1, "cat": "copy", "name": "copy", "ts": 1500, "dur": 250, "args": args}
    assert event == whole


def test_every_operation_is_there():
    shown = of_phase(photos(), "X")
    assert sorted((event["cat"], event["name"], event["args"].get("file")) for event in shown) == sorted(
        (operation.kind, operation.name, operation.file) for operation in photos()
    )
    assert {event["args"]["file"] for event in shown} == {PHOTOS}


def test_every_wait_says_whether_it_was_added():
    waits = [event["args"]["added"] for event in of_phase(photos(), "X") if event["cat"] == "wait"]
    assert waits == [operation.added for operation in sorted_waits(photos())]
    assert waits.count(True) == 4
    assert not any("added" in event["args"] for event in of_phase(photos(), "X") if event["cat"] != "wait")


def sorted_waits(operations):
    waits = [(operation.begin, number, operation) for number, operation in enumerate(operations)]
    return [operation for *_, operation in sorted(waits) if operation.kind == "wait"]


@pytest.mark.parametrize("operations", [photos(), many(500)], ids=["photos", "many"])
def test_arrows_lead_from_sources_to_waits(operations):
    open_slices, arrows = {}, {}
    for event in events(operations):
        where = event.get("pid"), event.get("tid")
        if event["ph"] == "X":
            open_slices[where] = event
        elif event["ph"] in "sf":
            # As a viewer reads it: the event belongs to the slice that is open now.
            inside = open_slices[where]
            assert inside["ts"] <= event["ts"] <= inside["ts"] + inside["dur"]
            arrows.setdefault(event["id"], []).append((event["ph"], inside))
            assert event.get("bp") == ("e" if event["ph"] == "f" else None)
    assert all([phase for phase, _ in ends] == ["s", "f"] for ends in arrows.values())
    shown = sorted(
        (source["name"], source["ts"], wait["cat"], wait["ts"]) for (_, source), (_, wait) in arrows.values()
    )
    assert shown == sorted(
        (wait.source.name, round(wait.source.begin * 1e6) / 1e3, "wait", round(wait.begin * 1e6) / 1e3)
        for wait in operations
        if wait.source
    )


def test_a_source_out_of_the_trace_has_no_arrow():
    source, wait = photos()[0], Stream(GPU, "s")
    record = Recorder()
    record.wait(wait, source)
    assert [event["ph"] for event in events(record.operations) if event["ph"] != "M"] == ["X"]


def test_times_of_events_rise():
    times = [event["ts"] for event in events(photos()) if event["ph"] != "M"]
    assert times == sorted(times)


def test_any_text_survives():
    name = 'a"b\\c\n</script>\udc80é'
    operation = Operation("host", name, Stream(GPU, "ströme"), GPU, 0, 1, "\udcff.py", 1)
    (event,) = of_phase([operation], "X")
    assert (event["name"], event["args"]["file"], event["args"]["stream"]) == (name, "\udcff.py", "ströme")
