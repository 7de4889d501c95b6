"""A trace as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from anabranch._trace.axis import folded
from anabranch._trace.colours import variables
from anabranch._trace.lanes import Lane, lanes
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import busy_spans, overlap
from anabranch._trace.words import outcome, printable, summary

FOLDER = Path(__file__).with_name("browser")
SCRIPTS = ("words", "places", "draw", "controls")
"""In the order of their dependencies; they share one scope."""


def page(operations: Sequence[Operation]) -> str:
    """Return operations, in the order in which they were enqueued, as an HTML document that loads nothing else.

    The page contains the operations as JSON, lane by lane.
    """
    # "<" could end the element that contains the JSON.
    data = json.dumps(_data(operations), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "summary": escape(printable(summary(operations))),
        "style": variables() + "\n" + _part("page.css"),
        "data": data,
        "script": "\n".join(_part(f"{name}.js") for name in SCRIPTS),
    }
    before, *rest = _part("page.html").split("{{")
    after = (part.partition("}}") for part in rest)
    return before + "".join(parts[name] + text for name, _, text in after)


def _part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _data(operations: Sequence[Operation]) -> dict[str, Any]:
    in_lanes = lanes(operations)
    in_order = [(number, operation) for number, lane in enumerate(in_lanes) for operation in lane.operations]
    positions = {operation: position for position, (_, operation) in enumerate(in_order)}
    axis = folded(operations)
    return {
        "begin": axis.begin,
        "end": axis.end,
        "gaps": axis.gaps,
        "devices": [{"alias": device.alias, "overlap": share} for device, share in overlap(operations).items()],
        "lanes": [_lane(lane, axis.end - axis.begin) for lane in in_lanes],
        "operations": [_operation(lane, operation, positions) for lane, operation in in_order],
    }


def _lane(lane: Lane, duration: float) -> dict[str, Any]:
    fields: dict[str, Any] = {"device": lane.device.alias, "label": lane.label}
    if lane.stream is not None:
        fields["busy"] = round(sum(end - begin for begin, end in busy_spans(lane)) / duration, 4)
    return fields


def _operation(lane: int, operation: Operation, positions: dict[Operation, int]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "lane": lane,
        "kind": operation.kind,
        "name": operation.name,
        "begin": round(operation.begin, 6),
        "end": round(operation.end, 6),
        "file": operation.file,
        "line": operation.line,
        "nbytes": operation.nbytes,
        "source": None if operation.source is None else positions.get(operation.source),
    }
    if operation.kind == "wait":
        fields["added"] = operation.added
    fields["outcome"] = outcome(operation)
    return {name: value for name, value in fields.items() if value is not None}
