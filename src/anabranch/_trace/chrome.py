"""Operations as JSON of the Trace Event Format, for Perfetto's viewer and ``chrome://tracing``.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from anabranch._trace.lanes import lanes, nested, stream_label
from anabranch._trace.operation import Operation
from anabranch._trace.words import outcome

_Event = dict[str, Any]


def chrome(operations: Sequence[Operation]) -> str:
    """Return operations, in the order in which they were enqueued, as a JSON document.

    A device is a process, a stream is a thread. Each operation is a complete event with its kind in ``cat``. An arrow
    connects the operation waited for with the wait.
    """
    metadata: list[_Event] = []
    devices: dict[Any, int] = {}
    placed: dict[Operation, tuple[int, int, int, int]] = {}
    for thread, lane in enumerate(lanes(operations), 1):
        process = devices.get(lane.device)
        if process is None:
            process = devices[lane.device] = len(devices) + 1
            metadata += _named("process", process, 0, lane.device.alias, process)
        metadata += _named("thread", process, thread, lane.label, thread)
        for operation, begin, end in nested(lane):
            placed[operation] = process, thread, begin, end

    # An arrow ends in the slice that is open at its time. Events of equal time therefore keep the order of enqueueing:
    # a source comes before its wait, and a wait before the next operation of its stream.
    events: list[tuple[int, int, _Event]] = []
    order = {operation: position for position, operation in enumerate(operations)}
    for operation, position in order.items():
        process, thread, begin, end = placed[operation]
        common = {"pid": process, "tid": thread}
        events.append((begin, position, {"ph": "X", **common, **_complete(operation, begin, end)}))
        source = operation.source
        if source is None or source not in placed:
            continue
        from_process, from_thread, from_begin, from_end = placed[source]
        # In the slice's last nanosecond, while it is open.
        leaves = max(from_begin, min(from_end, end) - 1)
        arrives = min(max(begin, end - 1, leaves), end)
        arrow = {"cat": "wait", "name": "wait", "id": position + 1}
        out = {"ph": "s", "pid": from_process, "tid": from_thread, "ts": leaves / 1000, **arrow}
        events.append((leaves, order[source], out))
        events.append((arrives, position, {"ph": "f", "bp": "e", **common, "ts": arrives / 1000, **arrow}))
    events.sort(key=lambda event: event[:2])
    lines = ",\n".join(json.dumps(event) for event in [*metadata, *(event for *_, event in events)])
    return f'{{"traceEvents": [\n{lines}\n], "displayTimeUnit": "ms"}}\n'


def _named(what: str, process: int, thread: int, name: str, rank: int) -> list[_Event]:
    common = {"ph": "M", "pid": process, "tid": thread}
    return [
        {"name": f"{what}_name", **common, "args": {"name": name}},
        {"name": f"{what}_sort_index", **common, "args": {"sort_index": rank}},
    ]


def _complete(operation: Operation, begin: int, end: int) -> _Event:
    args: dict[str, Any] = {
        "file": operation.file,
        "line": operation.line,
        "nbytes": operation.nbytes,
        "stream": stream_label(operation.stream),
    }
    args = {name: value for name, value in args.items() if value is not None}
    if operation.kind == "wait":
        args["added"] = operation.added
    if (word := outcome(operation)) is not None:
        args[word] = True
    return {
        "cat": operation.kind,
        "name": operation.name,
        "ts": begin / 1000,
        "dur": (end - begin) / 1000,
        "args": args,
    }
