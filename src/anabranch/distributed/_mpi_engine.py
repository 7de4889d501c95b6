"""Collectives over MPI, of arrays in host memory. Other arrays go through temporary ones there."""

from __future__ import annotations

from typing import Any

from anabranch._core.errors import CollectiveError
from anabranch._memory.array import Array
from anabranch._memory.copy import copy
from anabranch._memory.factories import empty
from anabranch._stream.stream import Stream
from anabranch.distributed._channel import VERBS, Channel, is_packed, overlap
from anabranch.distributed._engine import REDUCTIONS, Call
from anabranch.distributed._mpi import LARGEST_COUNT, Mpi

_NUMBERS = {verb: number for number, verb in enumerate(VERBS)}
_Transfer = tuple[int, Array | None, Array | None, bool, int, int, int, int]


class MpiEngine:
    """One communicator of MPI.

    Parameters
    ----------
    mpi : Mpi
    communicator : mpi4py.MPI.Comm
        Used by nobody else; given back by `close`.
    title : str
        What traces call it.
    timeout : float
        Seconds from the start of a collective.
    """

    name = "mpi"

    def __init__(self, mpi: Mpi, communicator: Any, title: str, timeout: float) -> None:
        self._mpi = mpi
        self._size: int = communicator.size
        self._channel = Channel(mpi.transport, mpi.module._handleof(communicator), title, timeout)

    def check(self, call: Call) -> None:
        """Raise TypeError for what MPI cannot reduce, ValueError for more elements than it counts."""
        self._words(call)

    def _words(self, call: Call) -> tuple[int, int, int]:
        # Count, type and operation, in MPI's words.
        array = call.send if call.send is not None else call.receive
        if array is None:
            return 0, 0, 0
        if call.verb in REDUCTIONS:
            count = call.count
            kind, op = self._mpi.reduction(array.dtype, call.op)
        else:
            # What is only moved may be of any type.
            count = call.count * array.dtype.itemsize
            kind, op = self._mpi.byte, 0
        if count > LARGEST_COUNT and not self._mpi.large_counts:
            raise ValueError(f"this MPI counts up to {LARGEST_COUNT}, not {count:,}: split the array")
        return count, kind, op

    def enqueue(self, calls: list[Call], stream: Stream, name: str) -> None:
        """Enqueue calls as one operation of a stream, with the copies that they need before and after it."""
        transfers: list[_Transfer] = []
        arrived: list[tuple[Array, Array]] = []
        divide = 0
        for call in calls:
            send, receive = call.send, call.receive
            if send is not None and (not _is_ready(send) or (receive is not None and overlap(send, receive))):
                send = _host_copy(send, stream)
            if receive is not None and not _is_ready(receive):
                temporary = _host_array(receive, stream)
                if call.in_place:
                    copy(temporary, receive, stream=stream)
                arrived.append((receive, temporary))
                receive = temporary
            if call.op == "avg" and receive is not None:
                divide = self._size
            count, kind, op = self._words(call)
            transfers.append((_NUMBERS[call.verb], send, receive, call.in_place, count, kind, op, call.peer))
        self._channel.submit(stream, name, transfers, divide)
        for array, temporary in arrived:
            copy(array, temporary, stream=stream)

    def has_channel(self, channel: Channel) -> bool:
        """Return whether the channel is this one's."""
        return self._channel == channel

    @property
    def started(self) -> int:
        """How many operations of all ranks were started."""
        return self._channel.started

    @property
    def is_waiting(self) -> bool:
        """Whether an operation is not over."""
        return not self._channel.idle

    def oldest(self) -> tuple[bool, int, str, str | None, int | None, float]:
        """Return what is known of the oldest operation that is not over."""
        return self._channel.oldest()

    def fail(self, error: CollectiveError) -> None:
        """Fail what is not over, and all that follows."""
        self._channel.fail(error)

    def close(self) -> None:
        """Give the communicator back once everything is over."""
        self._channel.close()


def _is_ready(array: Array) -> bool:
    return array.device.kind == "cpu" and is_packed(array)


def _host_array(array: Array, stream: Stream) -> Array:
    if array.device.kind == "cpu":
        return empty(array.shape, array.dtype, device=array.device, stream=stream)
    return empty(array.shape, array.dtype, device="cpu", pinned=True)


def _host_copy(array: Array, stream: Stream) -> Array:
    temporary = _host_array(array, stream)
    copy(temporary, array, stream=stream)
    return temporary
