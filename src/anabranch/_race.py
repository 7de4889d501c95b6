"""What a race looks like when it is told."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from anabranch._errors import RaceError
from anabranch._site import is_own

kinds = "RAW", "WAW", "WAR", "HOST", "FREE"

_Place = tuple[str | None, int | None]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two accesses of a race.

    Attributes
    ----------
    file, line : str and int, or None
        Where it was enqueued, or made by the host.
    stream : Stream or None
        None: the host.
    """

    file: str | None
    line: int | None
    stream: Any
    writes: bool
    reads: bool

    @property
    def access(self) -> str:
        """``"write"`` for whatever writes, else ``"read"``."""
        return "write" if self.writes else "read"

    def __str__(self) -> str:
        verb = "read and written" if self.reads and self.writes else "written" if self.writes else "read"
        who = "the host" if self.stream is None else f"{self.stream!r}"
        return f"{verb} by {who} at {self.file or '?'}:{self.line or '?'}"


def _kind(first: Side, second: Side) -> str:
    if first.stream is None or second.stream is None:
        return "HOST"
    if first.writes and second.reads:
        return "RAW"
    return "WAW" if first.writes else "WAR"


def _name_of(stream: Any, fallback: str) -> str:
    # What the program calls it, where that is to be seen from the innermost function of the program.
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_globals):
        frame = frame.f_back
    for namespace in (frame.f_locals, frame.f_globals):
        for name, value in namespace.items():
            if type(value) is type(stream) and value == stream and not name.startswith("_"):
                return name
    return stream.name if stream.name and stream.name.isidentifier() else fallback


def _fix(first: Side, second: Side, is_open: bool) -> str:
    if is_open:
        return "leave the `with array.host()` block before this"
    if first.stream is None:
        return "record an event after the host's access, and wait for it before this"
    if second.stream is None:
        return f"{_name_of(first.stream, 'first')}.synchronize()"
    return f"{_name_of(second.stream, 'second')}.wait_stream({_name_of(first.stream, 'first')})"


def error(
    first: Side, second: Side, memory: tuple[_Place, int, tuple[int, int]], is_open: bool, is_return: bool = False
) -> RaceError:
    """Return the error for two accesses with no order between them."""
    kind = "FREE" if is_return else _kind(first, second)
    (file, line), size, (low, high) = memory
    made = f", allocated at {os.path.basename(file)}:{line}" if file else ""
    array = f"array of {size} bytes{made}"
    fix = _fix(first, second, is_open)
    returned = f"returned to their owner at {second.file or '?'}:{second.line or '?'}"
    message = (
        f"{kind}: bytes {low} to {high} of an {array} are {first}, and then {second if not is_return else returned}, "
        f"with no order between the two; before the second: {fix}"
    )
    return RaceError(message, kind=kind, array=array, first=first, second=second, fix=fix)


def collect(races: list[RaceError], errors: list[RaceError]) -> None:
    """Add those whose pair of source lines is not there yet."""

    def pair(race: RaceError) -> tuple[Any, ...]:
        return race.first.file, race.first.line, race.second.file, race.second.line

    known = {pair(race) for race in races}
    for race in errors:
        if pair(race) not in known:
            known.add(pair(race))
            races.append(race)
