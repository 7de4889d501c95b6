"""What a communicator is made of: its ranks, the checks of its calls, and how it breaks."""

from __future__ import annotations

import copy
import operator
import threading
from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anabranch._core.errors import ClosedError, CollectiveError, DeviceError, Error
from anabranch._device.device import Device
from anabranch._memory.array import Array
from anabranch._stream.current import current_stream
from anabranch._stream.stream import Stream
from anabranch.distributed._channel import Channel, current_place, is_checking
from anabranch.distributed._engine import REDUCTIONS, Call, Engine

if TYPE_CHECKING:
    from anabranch.distributed._side import SideChannel

OPS = ("sum", "prod", "min", "max", "avg")


class Ranks:
    """The part of a communicator that is no public call."""

    __slots__ = (
        *("rank", "size", "local_rank", "local_size", "device", "backend", "timeout", "closed"),
        *("error", "name", "members"),
        *("_calls", "_control", "_engine", "_failing", "_group", "_messages", "_side", "_splits"),
    )

    def __init__(
        self,
        engine: Engine,
        control: Any,
        side: SideChannel,
        name: str,
        *,
        members: list[int],
        local: tuple[int, int],
        device: Device,
        timeout: float,
    ) -> None:
        self.rank: int = control.rank
        self.size: int = control.size
        self.local_rank: int = local[0]
        self.local_size: int = local[1]
        self.device: Device = device
        self.backend: str = engine.name
        self.timeout: float = timeout
        self.closed: bool = False
        self.error: CollectiveError | None = None
        self.name = name
        self.members = members
        self._engine = engine
        self._control = control
        self._side = side
        self._failing = threading.Lock()
        self._calls = 0
        self._messages: dict[tuple[int, int], int] = defaultdict(int)
        self._splits = 0
        self._group: Group | None = None
        side.register(self)

    def _check(self, verb: str, grouped: bool = False) -> None:
        if self.closed:
            raise ClosedError(f"{self!r} is closed")
        if self.error is not None:
            raise copy.copy(self.error)
        if self._group is not None and not grouped:
            raise Error(f"{verb} cannot be part of a group(), which takes send and recv: call it after the block")

    def _array(self, array: Array, name: str, written: bool) -> None:
        if type(array) is not Array:
            raise TypeError(f"{name} is an anabranch Array, not {type(array).__name__}; ab.asarray makes one")
        if array.device is not self.device:
            raise DeviceError(f"{name} is on {array.device.alias}, and the communicator is for {self.device.alias}")
        if written and array.read_only:
            raise ValueError(f"{name} is read-only memory, and would be written")

    def _same(self, out: Array, x: Array) -> None:
        if out.shape != x.shape or out.dtype != x.dtype:
            raise ValueError(f"out is {out.dtype} of shape {out.shape}, x {x.dtype} of {x.shape}: they must be equal")

    def _parts(self, whole: Array, part: Array, whole_name: str, part_name: str, written: Array) -> None:
        self._array(whole, whole_name, whole is written)
        self._array(part, part_name, part is written)
        if whole.dtype != part.dtype or whole.size != part.size * self.size:
            raise ValueError(
                f"{whole_name} is {whole.size} elements of {whole.dtype}: with {part.size} of {part.dtype} in "
                f"{part_name} and {self.size} ranks it must be {part.size * self.size} of {part.dtype}"
            )

    def _rank(self, rank: int, name: str) -> int:
        number = operator.index(rank)
        if not 0 <= number < self.size:
            raise ValueError(f"{name} is a rank from 0 to {self.size - 1}, not {number}")
        return number

    def _stream(self, stream: Stream | None) -> Stream:
        if stream is None:
            return current_stream(self.device)
        if type(stream) is not Stream:
            raise TypeError(f"a stream is a Stream or None, not {type(stream).__name__}")
        if stream.device is not self.device:
            raise DeviceError(f"{stream!r} is not of {self.device.alias}, the communicator's device")
        return stream

    def _enqueue(self, call: Call, array: Array | None, text: str, stream: Stream | None) -> None:
        target = self._stream(stream)
        self._engine.check(call)
        if is_checking() and self.size > 1:
            op = call.op if call.verb in REDUCTIONS else ""
            dtype = "" if array is None else array.dtype.str
            if array is not None:
                text = f"{text} of {call.count} {array.dtype}"
            self._compare(told([call.verb, op, dtype, call.count, call.peer], text))
        if call.count or call.verb == "barrier":
            self._engine.enqueue([call], target, call.verb)

    def _compare(self, told: dict[str, Any]) -> None:
        self._calls += 1
        file, line = current_place()
        try:
            verdict = self._side.compare(self, self._calls, told)
        except TimeoutError:
            raise CollectiveError(
                f"{told['text']} at {told['place']}: other ranks have made no call to compare it with in "
                f"{self.timeout:g} s",
                operation=told["what"][0],
                file=file,
                line=line,
            ) from None
        if verdict is not None:
            ranks = tuple(verdict["ranks"])
            raise CollectiveError(verdict["error"], operation=told["what"][0], ranks=ranks, file=file, line=line)
        if self.error is not None:
            raise copy.copy(self.error)

    # For the side channel

    def has_channel(self, channel: Channel) -> bool:
        """Return whether the core's channel is this one's."""
        return self._engine.has_channel(channel)

    @property
    def started(self) -> int:
        """How many operations of all ranks were started."""
        return self._engine.started

    @property
    def is_waiting(self) -> bool:
        """Whether an operation is not over."""
        return self._engine.is_waiting

    def give_up(self, reason: str) -> None:
        """Break the communicator, and tell the other ranks. Any thread."""
        self.fail(reason, ())
        self._side.announce(t="fail", comm=self.name, reason=f"rank {self.rank}: {reason}", ranks=[self.rank])

    def fail(self, reason: str, ranks: tuple[int, ...]) -> None:
        """Break the communicator: what is not over fails, and so does every later call. Any thread."""
        with self._failing:
            if self.error is not None:
                return
            found, _, name, file, line, age = self._engine.oldest()
            if found:
                where = f"{name} at {file}:{line}, enqueued {age:.1f} s ago,"
                text = f"{where} cannot complete on rank {self.rank}: {reason}"
            else:
                text = f"{self!r} cannot be used any more: {reason}"
            self.error = CollectiveError(text, operation=name, file=file, line=line, ranks=ranks)
            self._engine.fail(self.error)


def told(what: list[Any], text: str) -> dict[str, Any]:
    """Return a call as the side channel tells it: what has to be equal on all ranks, and words for it."""
    file, line = current_place()
    return {"what": what, "text": text, "place": f"{file}:{line}"}


class Group:
    """Messages of a communicator that become one operation when the block ends."""

    def __init__(self, communicator: Ranks) -> None:
        self._communicator = communicator
        self._calls: list[Call] = []
        self._stream: Stream | None = None

    def add(self, call: Call, stream: Stream) -> None:
        """Add a message. Raises ValueError for another stream than that of the first."""
        if self._stream is not None and stream != self._stream:
            raise ValueError(f"a group is one operation of one stream, {self._stream!r}, not of {stream!r}, too")
        self._stream = stream
        if call.count:
            self._calls.append(call)

    def __enter__(self) -> Self:
        self._communicator._check("group")
        self._communicator._group = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._communicator._group = None
        if kind is None and self._calls and self._stream is not None:
            self._communicator._engine.enqueue(self._calls, self._stream, "group")
