"""Operations as lanes, one per stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch._core.errors import ClosedError
from anabranch._trace.operation import Operation

if TYPE_CHECKING:
    from anabranch._device.device import Device
    from anabranch._stream.stream import Stream

BUSY = frozenset({"kernel", "copy", "fill", "host", "graph"})
"""The kinds of operation that keep a stream busy."""

MOMENTS = frozenset({"record", "alloc", "free"})
"""The kinds that take no time."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The operations of one stream.

    Attributes
    ----------
    device : Device
    stream : Stream or None
        None: of memory that is no stream's.
    label : str
        The stream's name, else its handle.
    operations : sequence of Operation
        In the order in which they began; of those that began together, in the order of enqueueing.
    """

    device: Device
    stream: Stream | None
    label: str
    operations: Sequence[Operation]


def stream_label(stream: Stream | None) -> str:
    """Return what a stream is called where it is shown."""
    if stream is None:
        return "host memory"
    try:
        return stream.name or f"{stream.handle:#x}"
    except ClosedError:
        return repr(stream).split()[1]  # which has the handle that a closed stream gives to nobody


def lanes(operations: Iterable[Operation]) -> list[Lane]:
    """Return the lanes of operations: those of one device in a row, devices and lanes in the order of first use.

    `operations` are in the order in which they were enqueued.
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
    """Return the operations of a lane with when they begin and end, in ns, such that each two nest or are apart.

    Clocks of a device may let an operation end a little after the next one of its stream began: it then ends where that
    begins.
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
