"""The share of time in which several streams are busy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import TYPE_CHECKING

from anabranch._trace.lanes import BUSY, Lane, lanes
from anabranch._trace.operation import Operation

if TYPE_CHECKING:
    from anabranch._device.device import Device


class Shares(dict["Device", float]):
    """A number per device; the device's alias is also a key."""

    if TYPE_CHECKING:

        def __getitem__(self, key: Device | str) -> float: ...

    def __missing__(self, key: object) -> float:
        for device, share in self.items():
            if device.alias == key:
                return share
        raise KeyError(key)


def busy_spans(lane: Lane) -> Iterator[tuple[float, float]]:
    """Yield the disjoint spans in which a lane's stream is busy, as begin and end in ms, in order."""
    begin = end = float("-inf")
    for operation in lane.operations:
        if operation.kind not in BUSY or operation.skipped or operation.end <= operation.begin:
            continue
        if operation.begin > end:
            if end > begin:
                yield begin, end
            begin = operation.begin
        end = max(end, operation.end)
    if end > begin:
        yield begin, end


def overlap(operations: Iterable[Operation]) -> Shares:
    """Return, per device, the share of its busy time in which two or more of its streams were busy.

    A stream is busy while one of its kernels, copies, fills, host functions, graphs or collectives runs, not while it
    waits. The share is 0 for a device that was never busy.
    """
    changes: dict[Device, list[tuple[float, int]]] = {}
    for lane in lanes(operations):
        of_device = changes.setdefault(lane.device, [])
        for begin, end in busy_spans(lane):
            of_device += (begin, 1), (end, -1)
    return Shares({device: _share(of_device) for device, of_device in changes.items()})


def _share(changes: list[tuple[float, int]]) -> float:
    changes.sort()
    one: list[float] = []
    several: list[float] = []
    streams, since = 0, 0.0
    for time, change in changes:
        if streams:
            (one if streams == 1 else several).append(time - since)
        streams += change
        since = time
    busy = fsum([*one, *several])
    return fsum(several) / busy if busy else 0.0
