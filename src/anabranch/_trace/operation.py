"""An operation as a trace shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from anabranch._device.device import Device
    from anabranch._stream.stream import Stream

Kind = Literal["kernel", "copy", "fill", "alloc", "free", "host", "graph", "record", "wait", "compile", "collective"]


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation that was put into a stream while a trace was on.

    Attributes
    ----------
    kind : str
        ``"kernel"``, ``"copy"``, ``"fill"``, ``"alloc"``, ``"free"``, ``"host"``, ``"graph"``, ``"record"``,
        ``"wait"``, ``"collective"``, or ``"compile"``: what a launch waits for before a kernel of its kinds of
        arguments is enqueued.
    name : str
        The name of the kernel, host function or collective, else the kind.
    stream : Stream or None
        None: the host's compilations, and memory that is no stream's.
    device : Device
    begin, end : float
        Milliseconds since the trace began. A wait ends when the stream may go on; a record, an allocation and a free
        take no time.
    file, line : str, int
        Where it was enqueued; None where no Python code did.
    added : bool
        Whether it is a wait that hazards added.
    nbytes : int or None
        Of a copy, fill, allocation, free or collective.
    source : Operation or None
        What a wait waits for: the newest operation, when the wait was enqueued, of the stream waited for. None if the
        trace does not have it.
    failed : bool
        Whether it failed. For a wait: whether what it waits for did.
    skipped : bool
        Whether it did not run, because its stream had failed before.
    """

    kind: Kind
    name: str
    stream: Stream | None
    device: Device
    begin: float
    end: float
    file: str | None = None
    line: int | None = None
    added: bool = False
    nbytes: int | None = None
    source: Operation | None = None
    failed: bool = False
    skipped: bool = False
