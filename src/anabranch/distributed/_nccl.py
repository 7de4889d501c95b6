"""Collectives over NCCL, through nccl4py, between GPUs. Each is an operation that NCCL puts into the stream."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch._core.errors import CaptureError, CollectiveError, Error
from anabranch._device.device import Device
from anabranch._memory.array import Array
from anabranch._memory.copy import copy
from anabranch._memory.factories import empty
from anabranch._stream.event import Event
from anabranch._stream.gate import fail
from anabranch._stream.stream import Stream
from anabranch.distributed._channel import (
    Channel,
    current_place,
    is_packed,
    overlap,
    submit_external,
    with_context,
)
from anabranch.distributed._engine import REDUCTIONS, Call

_MESSAGES = ("send", "recv", "group")
# As NumPy names them: NCCL's other types are none of NumPy's.
_DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
# How often the collectives in flight are looked at.
_INTERVAL = 0.1


def is_installed() -> bool:
    """Return whether nccl4py is there."""
    try:
        return importlib.util.find_spec("nccl") is not None
    except ValueError:
        return False  # a module without a specification


def require() -> None:
    """Raise ModuleNotFoundError where nccl4py is not installed."""
    if not is_installed():
        raise ModuleNotFoundError("collectives between GPUs need nccl4py: pip install anabranch[nccl]", name="nccl")


@dataclass
class _Flying:
    number: int
    name: str
    file: str | None
    line: int | None
    began: float
    event: Event
    stream: Stream


class NcclEngine:
    """One communicator of NCCL.

    Parameters
    ----------
    control : mpi4py.MPI.Comm
        Of the same ranks; tells them the identifier.
    device : Device
    timeout : float
        Seconds from when a collective is enqueued.
    report : callable
        Called with a reason when the communicator is to break, on a thread of its own.
    """

    name = "nccl"

    def __init__(self, control: Any, device: Device, timeout: float, report: Callable[[str], None]) -> None:
        require()
        import nccl.core

        self._nccl = nccl.core
        self._device = device
        self._timeout = timeout
        self._report = report
        identifier = bytes(nccl.core.get_unique_id()) if control.rank == 0 else None
        identifier = nccl.core.UniqueId.from_bytes(control.bcast(identifier, 0))
        self._comm = with_context(device, nccl.core.Communicator.init, control.size, control.rank, identifier)
        self._started = 0
        self._flying: deque[_Flying] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._watcher: threading.Thread | None = None

    def check(self, call: Call) -> None:
        """Raise TypeError for what NCCL cannot reduce."""
        array = call.send if call.send is not None else call.receive
        if call.verb in REDUCTIONS and array is not None and self._typestr(call, array) is None:
            raise TypeError(f"NCCL has no {call.op!r} of {array.dtype}: reduce another dtype, such as float32")

    def _typestr(self, call: Call, array: Array) -> str | None:
        dtype = array.dtype
        if call.verb not in REDUCTIONS:
            return "|u1"  # what is only moved may be of any type
        if dtype.kind == "c" and call.op == "sum":
            return f"<f{dtype.itemsize // 2}"  # pairs of numbers
        return dtype.str if dtype.name in _DTYPES and (call.op != "avg" or dtype.kind == "f") else None

    def enqueue(self, calls: list[Call], stream: Stream, name: str) -> None:
        """Have NCCL enqueue calls as one operation of a stream, with the copies that they need before and after it."""
        if stream.is_capturing:
            raise CaptureError("a collective over NCCL cannot be captured yet: end the capture before it")
        ready, arrived = [], []
        for call in calls:
            send, receive = call.send, call.receive
            if send is not None and (not is_packed(send) or (receive is not None and overlap(send, receive))):
                send = _packed(send, stream, filled=True)
            if receive is not None and not is_packed(receive):
                packed = _packed(receive, stream, filled=call.in_place)
                arrived.append((receive, packed))
                receive = packed
            ready.append((call, send, receive))
        accesses = [(send, True, False) for _, send, _ in ready if send is not None]
        accesses += [(receive, call.in_place, True) for call, _, receive in ready if receive is not None]
        file, line = current_place()
        submit_external(stream, self._title(name), accesses, lambda handle: self._put(ready, handle))
        self._watch(_Flying(self._started, name, file, line, time.monotonic(), stream.record_event(), stream))
        for array, packed in arrived:
            copy(array, packed, stream=stream)

    def _title(self, name: str) -> str:
        if name in _MESSAGES:
            return name
        self._started += 1
        return f"{name} #{self._started}"

    def _put(self, calls: list[tuple[Call, Array | None, Array | None]], stream: int) -> None:
        if len(calls) == 1:
            self._call(*calls[0], stream)
            return
        with self._nccl.group():
            for call, send, receive in calls:
                self._call(call, send, receive, stream)

    def _call(self, call: Call, send: Array | None, receive: Array | None, stream: int) -> None:
        comm, peer = self._comm, call.peer
        one, other = (None if array is None else self._buffer(call, array) for array in (send, receive))
        op = getattr(self._nccl.NcclRedOp, call.op.upper()) if call.op else None
        match call.verb:
            case "all_reduce":
                comm.allreduce(other if one is None else one, other, op, stream=stream)
            case "reduce":
                comm.reduce(other if one is None else one, other, op, peer, stream=stream)
            case "broadcast":
                comm.broadcast(one, one if other is None else other, peer, stream=stream)
            case "all_gather":
                comm.allgather(one, other, stream=stream)
            case "reduce_scatter":
                comm.reduce_scatter(one, other, op, stream=stream)
            case "all_to_all":
                comm.alltoall(one, other, stream=stream)
            case "gather":
                comm.gather(one, other, peer, stream=stream)
            case "scatter":
                comm.scatter(one, other, peer, stream=stream)
            case "send":
                comm.send(one, peer, stream=stream)
            case "recv":
                comm.recv(other, peer, stream=stream)
            case "barrier":
                token = self._token()
                comm.allreduce(token, token, self._nccl.NcclRedOp.SUM, stream=stream)

    def _buffer(self, call: Call, array: Array) -> Array:
        # NCCL counts elements of a type that it has. nccl4py takes the array by DLPack, where the array names its
        # device: through __cuda_array_interface__ it asks the driver, which on some machines always answers 0.
        typestr = self._typestr(call, array)
        assert typestr is not None  # as `check` has found
        return array.ravel().view(typestr)

    def _token(self) -> Array:
        # NCCL has no barrier: a sum of one byte that nobody reads.
        if not hasattr(self, "_one_byte"):
            self._one_byte = empty(1, "uint8", device=self._device)
        return self._one_byte

    # In flight

    def _watch(self, flying: _Flying) -> None:
        with self._changed:
            self._flying.append(flying)
            self._changed.notify()
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._look, name="anabranch-nccl", daemon=True)
                self._watcher.start()

    def _look(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._flying or self._ended)
                if self._ended:
                    return
                oldest = self._flying[0]
            try:
                over = oldest.event.query()
            except Error:
                over = True  # it failed with its stream
            if over:
                with self._changed:
                    if self._flying and self._flying[0] is oldest:
                        self._flying.popleft()
                continue
            if time.monotonic() - oldest.began > self._timeout:
                self._report(f"its {self._timeout:g} s are over")
                return
            error = int(self._comm.get_async_error())
            if error not in (0, 7):  # success, in progress
                self._report(f"NCCL reports the error {error}: {self._comm.get_last_error()}")
                return
            time.sleep(_INTERVAL)

    def has_channel(self, channel: Channel) -> bool:
        """Return False: the progress thread does not see these."""
        return False

    @property
    def started(self) -> int:
        """How many operations of all ranks were started."""
        return self._started

    @property
    def is_waiting(self) -> bool:
        """Whether an operation is not over."""
        return bool(self._flying)

    def oldest(self) -> tuple[bool, int, str, str | None, int | None, float]:
        """Return what is known of the oldest operation that is not over."""
        with self._changed:
            if not self._flying:
                return False, 0, "", None, None, 0.0
            one = self._flying[0]
            return True, one.number, one.name, one.file, one.line, time.monotonic() - one.began

    def fail(self, error: CollectiveError) -> None:
        """Fail the streams that wait, and abort the communicator, whose kernels then end."""
        with self._changed:
            streams = {one.stream: None for one in self._flying}
            self._flying.clear()
            self._ended = True
            self._changed.notify()
        for stream in streams:
            if not stream.closed:
                fail(stream, error)
        with_context(self._device, self._comm.abort)

    def close(self) -> None:
        """Destroy the communicator once everything is over. Waits for it, as NCCL does."""
        with self._changed:
            flying = list(self._flying)
        for one in flying:
            one.event.synchronize()
        with self._changed:
            self._ended = True
            self._changed.notify()
        with_context(self._device, self._comm.destroy)


def _packed(array: Array, stream: Stream, *, filled: bool) -> Array:
    packed = empty(array.shape, array.dtype, device=array.device, stream=stream)
    if filled:
        copy(packed, array, stream=stream)
    return packed
