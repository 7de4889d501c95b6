"""Operations made by hand, of streams and devices that only have what a trace shows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch._trace.operation import Operation

PHOTOS = "examples/photos.py"


@dataclass(frozen=True)
class Device:
    alias: str


@dataclass(frozen=True)
class Stream:
    device: Device
    name: str | None
    handle: int = 0x5581C0DE


class Recorder:
    """Puts operations into streams one after the other, waits where they have to."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._ends: dict[Any, float] = {}

    def add(self, kind: Any, stream: Any, duration: float = 0.0, name: str = "", **fields: Any) -> Operation:
        begin = max(self._ends.get(stream, 0.0), fields.pop("at", 0.0))
        fields = {"file": PHOTOS, "line": 10 + len(self.operations), **fields}
        device = fields.pop("device", None) or stream.device
        operation = Operation(kind, name or kind, stream, device, begin, begin + duration, **fields)
        self.operations.append(operation)
        if stream is not None:
            self._ends[stream] = operation.end
        return operation

    def wait(self, stream: Any, source: Operation, added: bool = False, **fields: Any) -> Operation:
        """Wait for an operation of another stream."""
        until = max(source.end, self._ends.get(stream, 0.0)) - self._ends.get(stream, 0.0)
        return self.add("wait", stream, until, source=source, added=added, **fields)


def photos() -> list[Operation]:
    """Return what two devices do with photographs: copies, kernels and host functions that overlap."""
    gpu, cpu = Device("cuda:0"), Device("cpu:0")
    upload, compute = Stream(gpu, "upload"), Stream(gpu, "compute")
    download, encode = Stream(gpu, "download"), Stream(cpu, "encode")
    nameless = Stream(cpu, None)
    record = Recorder()
    mib = 1 << 20
    for photo in range(4):
        record.add("alloc", upload, nbytes=24 * mib, at=0.05)
        record.add("copy", upload, 0.52, nbytes=24 * mib)
        arrived = record.add("record", upload)
        record.wait(compute, arrived, line=31)
        record.add("kernel", compute, 0.17, "to_linear", line=32)
        record.add("kernel", compute, 0.31 + 0.04 * photo, "blur_rows", line=33)
        blurred = record.add("kernel", compute, 0.14, "sharpen", line=34)
        if photo == 1:
            record.add("graph", compute, 0.2, "histogram", line=36)
        record.wait(download, blurred, added=True, line=41)
        record.add("copy", download, 0.4, nbytes=24 * mib, line=41)
        record.add("free", download, nbytes=24 * mib, line=42)
        done = record.add("record", download, line=43)
        record.wait(encode, done, line=45)
        record.add("host", encode, 0.36, "write_jpeg", line=46)
        record.add("kernel", nameless, 0.25, "thumbnail", line=50, at=done.end + 0.05)
    record.add("alloc", None, device=cpu, nbytes=24 * mib, at=0.02)
    record.add("alloc", None, device=cpu, nbytes=24 * mib, at=0.06)
    record.add("fill", nameless, 0.22, nbytes=mib, at=0.04)
    record.add("free", None, device=cpu, nbytes=24 * mib, at=4.1)
    return record.operations


# The lanes that they have.
LANES = [
    *[("cuda:0", label) for label in ("upload", "compute", "download")],
    *[("cpu:0", label) for label in ("encode", "0x5581c0de", "host")],
]


def many(number: int, lanes: int = 12) -> list[Operation]:
    """Return this many operations of streams that now and then wait for each other."""
    device = Device("cuda:0")
    streams = [Stream(device, f"worker {index}", index) for index in range(lanes)]
    record = Recorder()
    kinds = ("kernel", "copy", "kernel", "record", "fill", "host")
    for index in range(number):
        stream = streams[index * 7 % lanes]
        if index % 5 == 4:
            record.wait(stream, record.operations[-1], added=index % 10 == 9)
        else:
            kind = kinds[index % len(kinds)]
            record.add(kind, stream, 0.0 if kind == "record" else 0.01 + index * 37 % 50 / 1000, f"{kind}_{index}")
    return record.operations
