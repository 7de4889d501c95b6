from types import TracebackType
from typing import Any, Self

from anabranch._core.errors import CollectiveError
from anabranch._device.device import Device
from anabranch._memory.array import Array
from anabranch._stream.stream import Stream
from anabranch.distributed._channel import Channel
from anabranch.distributed._engine import Engine
from anabranch.distributed._side import SideChannel

OPS: tuple[str, ...]

class Ranks:
    rank: int
    size: int
    local_rank: int
    local_size: int
    device: Device
    backend: str
    timeout: float
    closed: bool
    error: CollectiveError | None
    name: str
    members: list[int]
    _control: Any
    _splits: int
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
    ) -> None: ...
    def _check(self, verb: str, grouped: bool = False) -> None: ...
    def _array(self, array: Array, name: str, written: bool) -> None: ...
    def _parts(self, whole: Array, part: Array, whole_name: str, part_name: str, written: Array) -> None: ...
    def _rank(self, rank: int, name: str) -> int: ...
    def _reduction(self, verb: str, x: Array, op: str, root: int, out: Array | None, stream: Stream | None) -> None: ...
    def _transfer(
        self,
        verb: str,
        send: Array | None,
        receive: Array | None,
        count: int,
        op: str,
        peer: int,
        stream: Stream | None,
        text: str | None = None,
    ) -> None: ...
    def _message(self, verb: str, x: Array, peer: int, stream: Stream | None) -> None: ...
    def has_channel(self, channel: Channel) -> bool: ...
    @property
    def started(self) -> int: ...
    @property
    def is_waiting(self) -> bool: ...
    def give_up(self, reason: str) -> None: ...
    def fail(self, reason: str, ranks: tuple[int, ...]) -> None: ...
    def _close(self) -> None: ...

class Group:
    def __init__(self, communicator: Ranks) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
