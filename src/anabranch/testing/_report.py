"""What an exploration found, as an object and as text."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING

from anabranch._core.errors import Error, KernelError, text_of

if TYPE_CHECKING:
    from anabranch.testing._exploration import Ended, Place

_WIDEST = 44


class Report:
    """The result of `explore`. ``print(report)`` shows it, `explain` returns the same text.

    Attributes
    ----------
    ok : bool
        Whether no run failed.
    classes : int
        How many classes of schedules were run; all that there are if `complete`, but for schedules at random.
    runs : int
        How often the function was called, without the run that is shown for comparison.
    complete : bool
        Whether nothing is left to run: False past `limit` or `timeout`, after Ctrl-C, if a run failed first, and if
        `uncontrolled`.
    uncontrolled : bool
        Whether orders were left out that exploration does not control: those of threads that wait while the function
        waits for them outside the library, of asyncio tasks beside one that awaits pending work, and of what host
        functions enqueue or read while nothing orders it with what others do to the same stream, array or event.
    error : BaseException or None
        Of the run that failed: what the function raised, or what an operation failed with.
    schedule : str or None
        The schedule that failed: ``explore(fn, schedules=report.schedule)`` runs it again.
    interrupted : bool
        Whether Ctrl-C ended the exploration.
    """

    def __init__(self, schedules: str | int) -> None:
        self.ok: bool = True
        self.classes: int = 0
        self.runs: int = 0
        self.complete: bool = False
        self.uncontrolled: bool = False
        self.error: BaseException | None = None
        self.schedule: str | None = None
        self.interrupted: bool = False
        self._schedules = schedules
        self._bound = 1.0
        self._failed: Ended | None = None
        self._passed: Ended | None = None

    def count(self, ended: Ended, bound: float) -> None:
        """Count a run."""
        self.runs += 1
        self.classes += ended.fresh
        self.uncontrolled |= ended.uncontrolled
        self._bound = bound

    def fail(self, error: BaseException, ended: Ended) -> None:
        """Keep the first run that failed."""
        self.ok = False
        self.error = error
        self.schedule = ended.schedule
        self._failed = ended

    def compare(self, ended: Ended) -> None:
        """Keep a run that passed."""
        self._passed = ended

    def explain(self) -> str:
        """Return the report as text: the schedule that failed, beside one that passed, with lines of the program."""
        lines = [self._summary()]
        if self.error is not None and self._failed is not None:
            lines += [f"schedule {self.schedule}: {text_of(self.error)}", ""]
            swapped = self._swapped()
            if self._passed is not None:
                lines += _beside(_picture("fails", self._failed, swapped), _picture("passes", self._passed, swapped))
            else:
                lines += _picture("fails", self._failed, swapped)
        return "\n".join(lines)

    def _summary(self) -> str:
        what = "class" if self.classes == 1 else "classes"
        if isinstance(self._schedules, int):
            text = (
                f"{self.runs} schedules at random, of {self.classes} {what}; each finds a bug of depth 3 with a "
                f"probability of at least {self._bound:.2g}"
            )
        elif self._schedules != "dpor":
            text = "1 schedule"
        elif self.complete:
            text = f"all {self.classes} {what} of schedules, in {self.runs} runs"
        else:
            text = f"{self.classes} {what} of schedules, in {self.runs} runs; not all"
        if self.uncontrolled:
            text += ", without other orders of the program's own threads, tasks and functions"
        if self.interrupted:
            text += ", interrupted"
        return f"{text}: {'all pass' if self.ok else 'one fails'}"

    def _swapped(self) -> set[tuple[int, int]]:
        """Return the two operations in conflict whose order differs first, or none."""
        if self._failed is None or self._passed is None:
            return set()
        place = {event[0]: number for number, event in enumerate(self._passed.events)}
        for event in self._failed.events:
            for number in event[4]:
                other = self._failed.events[number]
                if place.get(event[0], -1) < place.get(other[0], -1) and event[0] in place:
                    return {event[0], other[0]}
        return set()

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<Report: {self._summary()}>"


def _line_of(place: Place) -> str:
    file, line = place
    if file is None or line is None:
        return ""
    text = linecache.getline(file, line).strip()
    return f"{line}: {text}" if text else f"line {line}"


def _picture(title: str, ended: Ended, marked: set[tuple[int, int]]) -> list[str]:
    """One line for each event, in a column for each stream and host thread."""
    lanes = list(dict.fromkeys(event[1] for event in ended.events))
    lines = [title, "  ".join(lanes)]
    for key, lane, what, place, _ in ended.events:
        if what == "wait" or what == "mark":
            continue
        cells = ["│".center(len(name)) for name in lanes]
        cells[lanes.index(lane)] = "●".center(len(lane))
        mark = " ◄" if key in marked else ""
        label = f"{what}  {_line_of(place)}".rstrip()
        if len(label) > _WIDEST:
            label = label[: _WIDEST - 1] + "…"
        lines.append("  ".join(cells) + "  " + label + mark)
    return lines


def _beside(left: list[str], right: list[str]) -> list[str]:
    width = max(map(len, left))
    height = max(len(left), len(right))
    left = left + [""] * (height - len(left))
    right = right + [""] * (height - len(right))
    return [f"{one:{width}}   {two}".rstrip() for one, two in zip(left, right, strict=True)]


def deadlock_of(ended: Ended, raised: BaseException | None) -> Error:
    """Return the error that says who waits for whom."""
    lines = ["deadlock: nothing can happen any more"]
    for lane, what, waits_for, place in ended.deadlock:
        file, line = place
        where = f" ({file}:{line})" if file else ""
        lines.append(f"  {lane}{f', before {what}' if what else ''}, waits for {waits_for}{where}")
    error = Error("\n".join(lines))
    error.__cause__ = raised
    return error


def violation_of(ended: Ended) -> KernelError:
    """Return the error that names the kernel and the parameter that does what it is not declared to do."""
    file, line = ended.violated_at
    return KernelError(ended.violation + (f"; launched at {file}:{line}" if file else ""))
