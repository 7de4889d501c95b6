from typing import TypeAlias, final

Place: TypeAlias = tuple[str | None, int | None]

@final
class Ended:
    fresh: bool
    uncontrolled: bool
    schedule: str
    diverged: str
    failed_at: str
    failure: Exception | None
    events: list[tuple[tuple[int, int], str, str, Place, list[int]]]
    violation: str
    violated_at: Place
    deadlock: list[tuple[str, str, str, Place]]

@final
class Exploration:
    def __init__(self, schedules: str | int, seed: int) -> None: ...
    @property
    def more(self) -> bool: ...
    @property
    def bound(self) -> float: ...
    @property
    def operations(self) -> int: ...
    def begin(self) -> None: ...
    def drain(self, give_up: bool) -> None: ...
    def end(self, details: bool) -> Ended: ...
