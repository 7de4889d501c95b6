"""A trace as text."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch._trace.axis import extent, ticks
from anabranch._trace.lanes import BUSY, Lane, lanes
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import busy_spans, overlap
from anabranch._trace.words import printable, summary

WIDTH = 72  # characters of the time axis
LABEL = 20  # maximum letters of a stream's name
WORK, WAITING, ADDED, IDLE = "█░▒·"


def text(operations: Sequence[Operation]) -> str:
    """Return operations, in the order of enqueueing, as lines of text: a lane per stream.

    A character shows what took most of its time span. Activity is never rounded away.
    """
    if not operations:
        return "no operations: nothing was put into a stream while the trace was on"
    begin, end = extent(operations)
    in_lanes = lanes(operations)
    shares = overlap(operations)
    longest = max(len(_label(lane)) for lane in in_lanes)
    lines = [summary(operations)]
    device = None
    for lane in in_lanes:
        if lane.device != device:
            device = lane.device
            lines += ["", f"{device.alias}  overlap {shares[device]:.0%}"]
        busy = sum(until - since for since, until in busy_spans(lane)) / (end - begin)
        bar = _bar(lane, begin, end)
        lines.append(f"  {_label(lane):{longest}}  {bar}" + ("" if lane.stream is None else f"  {busy:4.0%}"))
    lines.append(" " * (longest + 4) + _axis(begin, end))
    lines += ["", f"{WORK} works   {WAITING} waits   {ADDED} waits, added by hazards   {IDLE} has nothing to do"]
    return printable("\n".join(lines))


def _label(lane: Lane) -> str:
    label = " ".join(lane.label.split())
    return label if len(label) <= LABEL else label[: LABEL - 1] + "…"


def _bar(lane: Lane, begin: float, end: float) -> str:
    per_character = (end - begin) / WIDTH
    times: list[dict[str, float]] = [{} for _ in range(WIDTH)]
    for operation in lane.operations:
        shown = (operation.kind in BUSY or operation.kind == "wait") and not operation.skipped
        if shown and operation.end > operation.begin:
            look = WORK if operation.kind in BUSY else ADDED if operation.added else WAITING
            _spread(times, look, (operation.begin - begin) / per_character, (operation.end - begin) / per_character)
    return "".join(max(of, key=of.__getitem__) if of else IDLE for of in times)


def _spread(times: list[dict[str, float]], look: str, begin: float, end: float) -> None:
    for position in range(min(int(begin), WIDTH - 1), min(int(end), WIDTH - 1) + 1):
        part = min(end, position + 1) - max(begin, position)
        if part > 0:
            times[position][look] = times[position].get(look, 0.0) + part


def _axis(begin: float, end: float) -> str:
    line = ""
    for time, label in ticks(begin, end, 6):
        position = round((time - begin) / (end - begin) * WIDTH)
        if position >= len(line) + bool(line):
            line = line.ljust(position) + label
    return line
