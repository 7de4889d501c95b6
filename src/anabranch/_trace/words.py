"""Text for times, sizes and operations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anabranch._trace.lanes import MOMENTS, stream_label
from anabranch._trace.operation import Operation

UNITS = (("s", 1e3), ("ms", 1.0), ("µs", 1e-3), ("ns", 1e-6))
"""Units of time and their lengths in milliseconds."""

# Characters that XML or UTF-8 cannot represent: control characters and lone surrogates.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Return a text that every format can represent."""
    return _UNPRINTABLE.sub("\ufffd", text)


def unit(duration: float) -> tuple[str, float]:
    """Return the best unit for a duration in ms, and the unit's length in milliseconds."""
    return next((pair for pair in UNITS if duration >= pair[1]), UNITS[-1])


def time(milliseconds: float) -> str:
    """Return a time with its unit, in four digits."""
    name, of_unit = unit(milliseconds) if milliseconds else ("ms", 1.0)
    value = milliseconds / of_unit
    return f"{value:.4g} {name}" if value < 1e4 else f"{value:.0f} {name}"


def span(begin: float, end: float) -> str:
    """Return a span of time, in ms: both ends, with enough digits to differ, and the duration."""
    digits = 3 if end - begin >= 0.05 else 6
    return f"{begin:.{digits}f} to {end:.{digits}f} ms, {time(end - begin)}"


def size(nbytes: int) -> str:
    """Return a number of bytes with its unit."""
    value, name = float(nbytes), "B"
    for name in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or name == "TiB":
            break
        value /= 1024
    return f"{value:.4g} {name}"


def count(number: int, thing: str) -> str:
    """Return a count with its noun in singular or plural."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def place(operation: Operation) -> str | None:
    """Return the source line of an operation as ``file:line``, or None where no Python code enqueued it."""
    if operation.file is None:
        return None
    return operation.file if operation.line is None else f"{operation.file}:{operation.line}"


def kind(operation: Operation) -> str:
    """Return the displayed kind of an operation, which marks waits that hazards added."""
    return "added wait" if operation.kind == "wait" and operation.added else operation.kind


def outcome(operation: Operation) -> str | None:
    """Return the word for an operation that failed or did not run, or None for one that did what it should."""
    return "skipped" if operation.skipped else "failed" if operation.failed else None


def describe(operation: Operation) -> str:
    """Return all details of an operation, in lines."""
    title = kind(operation)
    if operation.name != operation.kind:
        title += f" {operation.name}"
    if operation.source is not None:
        title += f" for {operation.source.name} of {stream_label(operation.source.stream)}"
    if (word := outcome(operation)) is not None:
        title += f", {word}"
    lines = [title, f"{stream_label(operation.stream)} of {operation.device.alias}"]
    if operation.kind in MOMENTS:
        lines.append(f"at {operation.begin:.3f} ms")
    else:
        lines.append(span(operation.begin, operation.end))
    if operation.nbytes is not None:
        lines.append(size(operation.nbytes))
    if (line := place(operation)) is not None:
        lines.append(line)
    return printable("\n".join(lines))


def summary(operations: Sequence[Operation]) -> str:
    """Return the number of operations, streams and devices, the total duration, and the number of added waits."""
    if not operations:
        return "no operations"
    streams = {operation.stream for operation in operations} - {None}
    devices = {operation.device for operation in operations}
    took = max(operation.end for operation in operations) - min(operation.begin for operation in operations)
    added = sum(operation.kind == "wait" and operation.added for operation in operations)
    return (
        f"{count(len(operations), 'operation')} on {count(len(streams), 'stream')} of {count(len(devices), 'device')} "
        f"in {time(took)}, {count(added, 'wait')} added"
    )
