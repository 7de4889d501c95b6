"""A trace in Perfetto's own format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch._trace.lanes import MOMENTS, lanes, nested
from anabranch._trace.operation import Operation
from anabranch._trace.words import outcome, printable

_SEQUENCE = 1  # of packets: ours all belong to one


def perfetto(operations: Sequence[Operation]) -> bytes:
    """Return operations, in the order in which they were enqueued, as the bytes of a ``.pftrace`` file.

    A device is a track, with a child track per stream. An operation is a slice, or an instant if it has no duration,
    with its kind as category. A flow connects the operation waited for with the wait.

    Raises
    ------
    ModuleNotFoundError
        Perfetto's package is not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "traces for Perfetto need its package; install it with: pip install 'anabranch[trace]'", name=error.name
        ) from error

    trace = proto.Trace()
    placed: dict[Operation, tuple[int, int, int]] = {}
    devices: dict[Any, int] = {}
    for lane in lanes(operations):
        if lane.device not in devices:
            devices[lane.device] = _add_track(trace, proto, lane.device.alias, None)
        track = _add_track(trace, proto, lane.label, devices[lane.device])
        for operation, begin, end in nested(lane):
            placed[operation] = track, begin, end

    events: list[tuple[int, int, Any]] = []
    begins: dict[Operation, Any] = {}
    ends: dict[Operation, Any] = {}
    for position, operation in enumerate(operations):
        track, begin, end = placed[operation]
        begins[operation] = ends[operation] = event = _begin_event(proto, operation, track)
        events.append((begin, position, event))
        if operation.kind in MOMENTS or begin == end:
            event.type = proto.TrackEvent.TYPE_INSTANT
            continue
        ends[operation] = proto.TrackEvent(type=proto.TrackEvent.TYPE_SLICE_END, track_uuid=track)
        events.append((end, position, ends[operation]))

    _add_flows(operations, placed, begins, ends)
    # Events of equal time keep the order of enqueueing: a source ends before its wait does, and an operation ends
    # before the next one of its stream begins.
    events.sort(key=lambda event: event[:2])
    for time, _, event in events:
        # Perfetto's timestamps are not negative. A GPU's first times may be, by the error of its clock.
        trace.packet.add(timestamp=max(time, 0), trusted_packet_sequence_id=_SEQUENCE, track_event=event)
    if trace.packet:
        trace.packet[0].sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    serialized: bytes = trace.SerializeToString()
    return serialized


def _add_flows(
    operations: Sequence[Operation],
    placed: dict[Operation, tuple[int, int, int]],
    begins: dict[Operation, Any],
    ends: dict[Operation, Any],
) -> None:
    for flow, operation in enumerate(operations, 1):
        source = operation.source
        if source is None or source not in placed:
            continue
        # Perfetto drops a flow that ends before it starts. Most waits begin before the operation that they wait for, so
        # both ends attach to the ends of slices.
        late = placed[source][2] > placed[operation][2]
        (begins if late else ends)[source].flow_ids.append(flow)
        ends[operation].terminating_flow_ids.append(flow)


def _add_track(trace: Any, proto: Any, name: str, parent: int | None) -> int:
    rank = len(trace.packet)
    track = proto.TrackDescriptor(
        uuid=rank + 1,  # 0 is the root
        parent_uuid=parent,
        name=printable(name),
        child_ordering=proto.TrackDescriptor.EXPLICIT,
        sibling_order_rank=rank,
        # Otherwise streams of the same name would share a track.
        sibling_merge_behavior=proto.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE,
    )
    trace.packet.add(trusted_packet_sequence_id=_SEQUENCE, track_descriptor=track)
    return rank + 1


def _begin_event(proto: Any, operation: Operation, track: int) -> Any:
    event = proto.TrackEvent(
        type=proto.TrackEvent.TYPE_SLICE_BEGIN,
        track_uuid=track,
        name=printable(operation.name),
        categories=[operation.kind],
    )
    if operation.file is not None:
        file = printable(operation.file)
        event.source_location.file_name = file
        event.debug_annotations.add(name="file", string_value=file)
    if operation.line is not None:
        event.source_location.line_number = operation.line
        event.debug_annotations.add(name="line", int_value=operation.line)
    if operation.nbytes is not None:
        event.debug_annotations.add(name="nbytes", int_value=operation.nbytes)
    if operation.kind == "wait":
        event.debug_annotations.add(name="added", bool_value=operation.added)
    if (word := outcome(operation)) is not None:
        event.debug_annotations.add(name=word, bool_value=True)
    return event
