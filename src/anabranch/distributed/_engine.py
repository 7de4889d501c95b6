"""What a communicator needs of a transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from anabranch._core.errors import CollectiveError
from anabranch._memory.array import Array
from anabranch._stream.stream import Stream
from anabranch.distributed._channel import Channel

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")


@dataclass(slots=True)  # not frozen, which would take twice as long to make
class Call:
    """One transfer, with arguments that were checked.

    Attributes
    ----------
    verb : str
    send, receive : Array or None
        What this rank sends, and what it receives into.
    in_place : bool
        Whether what it receives into is read before.
    count : int
        Elements that each rank contributes, or gets.
    op : str
        Of a reduction.
    peer : int
        The root, or the other rank of a message.
    """

    verb: str
    send: Array | None
    receive: Array | None
    in_place: bool
    count: int
    op: str
    peer: int


class Engine(Protocol):
    """Collectives of one communicator over one transport."""

    name: str

    def check(self, call: Call) -> None:
        """Raise TypeError for a dtype or operation that the transport does not have."""

    def enqueue(self, calls: list[Call], stream: Stream, name: str) -> None:
        """Enqueue calls as one operation of a stream, in the order of the program."""

    def has_channel(self, channel: Channel) -> bool:
        """Return whether the channel is this one's."""

    @property
    def started(self) -> int:
        """How many operations of all ranks were started."""

    @property
    def is_waiting(self) -> bool:
        """Whether an operation is not over."""

    def oldest(self) -> tuple[bool, int, str, str | None, int | None, float]:
        """Return what is known of the oldest operation that is not over, as `Channel.oldest`."""

    def fail(self, error: CollectiveError) -> None:
        """Fail what is not over, and all that follows."""

    def close(self) -> None:
        """Give the communicator back once everything is over."""
