from anabranch._core.errors import CollectiveError
from anabranch._memory.array import Array
from anabranch.distributed._channel import Channel

VERBS: tuple[str, ...]
REDUCTIONS: tuple[str, ...]

class Call:
    verb: int
    send: Array | None
    receive: Array | None
    in_place: bool
    count: int
    op: str
    peer: int

class Engine:
    name: str
    def has_channel(self, channel: Channel) -> bool: ...
    @property
    def started(self) -> int: ...
    @property
    def is_waiting(self) -> bool: ...
    def oldest(self) -> tuple[bool, int, str, str | None, int | None, float]: ...
    def fail(self, error: CollectiveError) -> None: ...
    def close(self) -> None: ...
