"""Race reports: the two accesses, the memory, and a fix."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from anabranch._core.errors import RaceError
from anabranch._device.device import current_device
from anabranch._task.site import is_own

kinds = "RAW", "WAW", "WAR", "HOST", "FREE"

# How a program obtains the default streams, by handle.
_default_streams = {1: "legacy_stream", 2: "per_thread_stream"}

_Place = tuple[str | None, int | None]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two accesses of a race.

    Attributes
    ----------
    file, line : str and int, or None
        Where it was enqueued, or made by the host.
    stream : Stream or None
        None: the host. What the stream is called, a str, if the race is another process's.
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

    # Another process does not have the stream, so it receives the stream's name.
    def __reduce__(self) -> tuple[Any, ...]:
        stream = None if self.stream is None else str(self.stream)
        return Side, (self.file, self.line, stream, self.writes, self.reads)

    def __deepcopy__(self, memo: dict[int, Any]) -> Side:
        return self

    def __str__(self) -> str:
        verb = "read and written" if self.reads and self.writes else "written" if self.writes else "read"
        who = "the host" if self.stream is None else str(self.stream)
        return f"{verb} by {who} at {self.file or '?'}:{self.line or '?'}"


def _kind(first: Side, second: Side) -> str:
    if first.stream is None or second.stream is None:
        return "HOST"
    if first.writes and second.reads:
        return "RAW"
    return "WAW" if first.writes else "WAR"


def _held(frame: FrameType, wanted: Callable[[Any], bool]) -> str | None:
    """Return the name by which a function of the program holds an object: a local, an attribute, or a global."""
    # A copy, since other threads may set names meanwhile.
    code, found = frame.f_code, dict(frame.f_locals)
    for name, value in found.items():
        if not name.startswith("_") and wanted(value):
            return name
    # Attributes of the first parameter, which methods call `self`.
    owner = code.co_varnames[0] if code.co_argcount else None
    held = getattr(found.get(owner), "__dict__", None) if owner else None
    for name, value in list(held.items()) if isinstance(held, dict) else ():
        if wanted(value):
            return f"{owner}.{name}"
    for name, value in list(frame.f_globals.items()):
        if not name.startswith("_") and wanted(value):
            return name
    return None


def _name_of(stream: Any, fallback: str) -> str:
    # The program's own name for the stream, if the program's innermost function can see one.
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_globals):
        frame = frame.f_back
    name = _held(frame, lambda value: type(value) is type(stream) and value == stream)
    if name is not None:
        return name
    if stream.handle in _default_streams:
        package = _held(frame, lambda value: value is sys.modules["anabranch"]) or "ab"
        device = "" if stream.device is current_device() else f'"{stream.device.alias}"'
        return f"{package}.{_default_streams[stream.handle]}({device})"
    # Not a name that means something else there.
    usable = stream.name and stream.name.isidentifier() and stream.name not in {**frame.f_globals, **frame.f_locals}
    return stream.name if usable else fallback


def _fix(first: Side, second: Side, is_open: bool, is_elsewhere: bool) -> str:
    if is_open:
        return "leave the `with array.host()` block before this"
    if first.stream is None:
        return "record an event after the host's access, and wait for it before this"
    if is_elsewhere:
        return "record an event in the thread whose per-thread stream that is, and wait for it before this"
    if second.stream is None:
        return f"{_name_of(first.stream, 'first')}.synchronize()"
    return f"{_name_of(second.stream, 'second')}.wait_stream({_name_of(first.stream, 'first')})"


def error(
    first: Side,
    second: Side,
    memory: tuple[_Place, int, tuple[int, int]],
    is_open: bool,
    is_return: bool = False,
    is_elsewhere: bool = False,
) -> RaceError:
    """Return the error for two unordered accesses.

    `is_elsewhere`: the first access was made in another thread's per-thread stream.
    """
    kind = "FREE" if is_return else _kind(first, second)
    (file, line), size, (low, high) = memory
    made = f", allocated at {os.path.basename(file)}:{line}" if file else ""
    array = f"array of {size} bytes{made}"
    fix = _fix(first, second, is_open, is_elsewhere)
    returned = f"returned to their owner at {second.file or '?'}:{second.line or '?'}"
    message = (
        f"{kind}: bytes {low} to {high} of an {array} are {first}, and then {second if not is_return else returned}, "
        f"with no order between the two; before the second: {fix}"
    )
    return RaceError(message, kind=kind, array=array, first=first, second=second, fix=fix)


def collect(races: list[RaceError], errors: list[RaceError]) -> None:
    """Add the errors whose pair of source lines is not in `races` yet."""

    def pair(race: RaceError) -> tuple[Any, ...]:
        return race.first.file, race.first.line, race.second.file, race.second.line

    known = {pair(race) for race in races}
    for race in errors:
        if pair(race) not in known:
            known.add(pair(race))
            races.append(race)
