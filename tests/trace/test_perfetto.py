"""Timelines in Perfetto's own format."""

from __future__ import annotations

import sys

import pytest

from anabranch._trace.operation import Operation
from anabranch._trace.perfetto import perfetto

from .parts import LANES, Device, Stream, many, photos

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed")
GPU = Device("cuda:0")
BEGIN, END, INSTANT = proto.TrackEvent.TYPE_SLICE_BEGIN, proto.TrackEvent.TYPE_SLICE_END, proto.TrackEvent.TYPE_INSTANT


def packets(operations):
    trace = proto.Trace()
    trace.ParseFromString(perfetto(operations))
    return trace.packet


def tracks(operations):
    return [packet.track_descriptor for packet in packets(operations) if packet.HasField("track_descriptor")]


def events(operations):
    """Return all events as pairs of time and event."""
    return [(packet.timestamp, packet.track_event) for packet in packets(operations) if packet.HasField("track_event")]


def notes(event):
    kinds = "string_value", "int_value", "bool_value"
    return {
        note.name: next(getattr(note, kind) for kind in kinds if note.HasField(kind))
        for note in event.debug_annotations
    }


def test_no_operations():
    assert list(packets([])) == []


def test_streams_are_tracks_below_their_device():
    by_uuid = {track.uuid: track for track in tracks(photos())}
    assert len(by_uuid) == len(tracks(photos()))
    assert 0 not in by_uuid
    shown = [(by_uuid[track.parent_uuid].name, track.name) for track in by_uuid.values() if track.parent_uuid]
    assert shown == LANES
    ranks = [track.sibling_order_rank for track in by_uuid.values()]
    assert ranks == sorted(set(ranks))


def test_all_packets_are_of_one_sequence():
    first, *rest = packets(photos())
    assert first.sequence_flags == proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    assert {packet.trusted_packet_sequence_id for packet in [first, *rest]} == {1}


def test_an_operation_is_a_slice():
    operation = Operation("copy", "copy", Stream(GPU, "s"), GPU, 1.5, 1.75, "a.py", 7, nbytes=64)
    (begin, opens), (end, closes) = events([operation])
    assert (begin, opens.type, end, closes.type) == (1_500_000, BEGIN, 1_750_000, END)
    assert (opens.name, list(opens.categories), opens.track_uuid) == ("copy", ["copy"], closes.track_uuid)
    assert notes(opens) == {"file": "a.py", "line": 7, "nbytes": 64}
    assert (opens.source_location.file_name, opens.source_location.line_number) == ("a.py", 7)


def test_what_a_gpu_s_clock_puts_before_the_beginning_is_at_it():
    (begin, _), (end, _) = events([Operation("copy", "copy", Stream(GPU, "s"), GPU, -0.5, 0.25)])
    assert (begin, end) == (0, 250_000)


@pytest.mark.parametrize("kind", ["record", "alloc", "free"])
def test_what_takes_no_time_is_an_instant(kind):
    ((moment, event),) = events([Operation(kind, kind, Stream(GPU, "s"), GPU, 2.0, 2.0)])
    assert (moment, event.type, list(event.categories)) == (2_000_000, INSTANT, [kind])
    assert notes(event) == {}


def test_every_wait_says_whether_it_was_added():
    waits = [notes(event)["added"] for _, event in events(photos()) if "wait" in event.categories]
    assert len(waits) == 12
    assert waits.count(True) == 4


@pytest.mark.parametrize("operations", [photos(), many(500)], ids=["photos", "many"])
def test_slices_nest_and_all_operations_are_there(operations):
    stacks, times, seen = {}, [], []
    for moment, event in events(operations):
        times.append(moment)
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == END:
            stack.pop()
            continue
        seen.append((event.categories[0], event.name, moment))
        if event.type == BEGIN:
            stack.append(event)
            assert len(stack) == 1  # these streams do one thing at a time
    assert times == sorted(times)
    assert not any(stacks.values())
    assert sorted(seen) == sorted((one.kind, one.name, round(one.begin * 1e6)) for one in operations)


@pytest.mark.parametrize("operations", [photos(), many(500)], ids=["photos", "many"])
def test_flows_lead_from_sources_to_waits(operations):
    stacks, started, flows = {}, {}, []
    for _, event in events(operations):
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == BEGIN:
            stack.append(event)
        of = event if event.type == INSTANT else stack[-1]
        started |= dict.fromkeys(event.flow_ids, of)
        # Started before: an end without a start is dropped by who reads the trace.
        flows += [(started.pop(flow).name, of.name, notes(of)["line"]) for flow in event.terminating_flow_ids]
        if event.type == END:
            stack.pop()
    assert started == {}
    assert sorted(flows) == sorted((wait.source.name, "wait", wait.line) for wait in operations if wait.source)


def test_a_wait_that_ends_before_its_source_has_its_flow():
    one, other = Stream(GPU, "one"), Stream(GPU, "other")
    source = Operation("kernel", "k", one, GPU, 0.0, 3.0)
    wait = Operation("wait", "wait", other, GPU, 0.0, 2.0, source=source)
    flows = [(list(event.flow_ids), list(event.terminating_flow_ids)) for _, event in events([source, wait])]
    assert flows == [([2], []), ([], []), ([], [2]), ([], [])]


def test_any_text_survives():
    operation = Operation("host", "a\udc80\x00é", Stream(GPU, "s\udcff"), GPU, 0, 1, "\udcff.py", 1)
    assert [track.name for track in tracks([operation])] == ["cuda:0", "s\ufffd"]
    assert events([operation])[0][1].name == "a\ufffd\ufffdé"


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto", None)
    for module in [name for name in sys.modules if name.startswith("perfetto.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'anabranch\[trace\]'"):
        perfetto(photos())
