from types import TracebackType
from typing import Literal, Self, TypeAlias, final

from anabranch._core.errors import RaceError

HazardMode: TypeAlias = Literal["auto", "check", "off"]

class hazards:  # noqa: N801
    mode: HazardMode
    bounds: bool | None
    def __init__(self, mode: HazardMode, bounds: bool | None = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class collect_races:  # noqa: N801
    def __enter__(self) -> list[RaceError]: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Found: ...

@final
class OpenAccess:
    def end(self) -> None: ...

@final
class PastOf:
    def observe(self) -> None: ...

@final
class Touches: ...

def added_waits() -> int: ...

class default_mode:  # noqa: N801
    def __init__(self, mode: str) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
