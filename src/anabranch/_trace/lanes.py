"""Lanes: operations grouped by stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch._core.errors import ClosedError
from anabranch._trace.operation import Operation

if TYPE_CHECKING:
    from anabranch._device.device import Device
    from anabranch._stream.stream import Stream

BUSY = frozenset({"kernel", "copy", "fill", "host", "graph", "collective"})
"""The kinds of operation that keep a stream busy."""

MOMENTS = frozenset({"record", "alloc", "free"})
"""Kinds without duration."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The operations of one stream.

    Attributes
    ----------
    device : Device
    stream : Stream or None
        None: the host's compilations, and memory that belongs to no stream.
    label : str
        The stream's name, else its handle.
    operations : sequence of Operation
        By begin; operations that begin together are in the order of enqueueing.
    """

    device: Device
    stream: Stream | None
    label: str
    operations: Sequence[Operation]


def stream_label(stream: Stream | None) -> str:
    """Return the display name of a stream."""
    if stream is None:
        return "host"
    try:
        return stream.name or f"{stream.handle:#x}"
    except ClosedError:
        return repr(stream).split()[1]  # includes the handle, which a closed stream no longer returns


def lanes(operations: Iterable[Operation]) -> list[Lane]:
    """Return the lanes of operations. Lanes of a device are adjacent; devices and lanes are in order of first use.

    `operations` must be in the order of enqueueing.
    """
    by_device: dict[Device, dict[Stream | None, list[Operation]]] = {}
    for operation in operations:
        by_device.setdefault(operation.device, {}).setdefault(operation.stream, []).append(operation)
    return [
        Lane(device, stream, stream_label(stream), sorted(enqueued, key=lambda operation: operation.begin))
        for device, by_stream in by_device.items()
        for stream, enqueued in by_stream.items()
    ]


def nested(lane: Lane) -> list[tuple[Operation, int, int]]:
    """Return the operations of a lane with begin and end in ns, adjusted so that any two nest or are disjoint.

    A device's clock may let an operation end slightly after the next one of its stream begins; it is then cut there.
    """
    spans: list[tuple[Operation, int, int]] = []
    around: list[int] = []
    for operation in lane.operations:
        begin, end = round(operation.begin * 1e6), round(operation.end * 1e6)
        while around and spans[around[-1]][2] <= begin:
            around.pop()
        while around and spans[around[-1]][2] < end:
            last = around.pop()
            before, its_begin, its_end = spans[last]
            if its_begin < begin:
                spans[last] = before, its_begin, begin
            else:
                begin = its_end
        if around:
            begin = max(begin, spans[around[-1]][1])
        around.append(len(spans))
        spans.append((operation, begin, max(begin, end)))
    return spans
