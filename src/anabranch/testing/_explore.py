"""`explore`: a program under every legal schedule of its operations that can matter."""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from anabranch._core.core import finalizing
from anabranch._core.errors import Error
from anabranch._hazards.ordering import check_bounds
from anabranch.testing._exploration import Ended, Exploration
from anabranch.testing._report import Report, deadlock_of, violation_of

# How many more runs look for one that passes, to show beside the one that fails.
_RUNS_FOR_A_PASSING_ONE = 100


def explore(
    fn: Callable[[], object],
    *,
    schedules: str | int = "dpor",
    seed: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Report:
    """Run a function under the legal schedules of its operations on the CPU devices, one after another.

    Schedules fall into classes: two of one class differ only in the order of operations that do not conflict, judged by
    the bytes that they access. One schedule of each class is run. A query is an operation, too: both answers are tried.
    A run fails if the function raises, an operation fails, or the streams and the host deadlock.

    Exploration stops at the first schedule that fails. Ctrl-C stops it and returns the findings so far.

    Parameters
    ----------
    fn : callable
        Called without arguments, once for each schedule; each call must begin from the same state and do the same. It
        must create its own streams and arrays; changes of the current streams and modes are undone after each call.
    schedules : str or int
        ``"dpor"``: one schedule of each class. A number: that many random schedules, with PCT's bound. Any
        other text: the schedule that `Report.schedule` names, once; it is an error if the program has changed since.
    seed : int
        For schedules at random.
    limit : int, optional
        The most runs.
    timeout : float, optional
        Seconds after which no further run begins.

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError
        If an argument makes no sense; of a schedule, the message says what is wrong.
    Error
        In a host function.

    Examples
    --------
    >>> import anabranch as ab
    >>> def program():
    ...     a, s = ab.zeros(4, device="cpu"), ab.Stream("cpu")
    ...     s.wait_stream(ab.current_stream("cpu"))
    ...     ab.fill(a, 1, stream=s)
    ...     assert a.numpy().sum() == 4
    >>> report = ab.testing.explore(program)
    >>> report.ok, report.classes
    (True, 1)
    """
    _check(fn, seed, limit, timeout)
    exploration = exploration_of(schedules, seed)
    report = Report(schedules)
    deadline = None if timeout is None else time.monotonic() + timeout
    passing: str | None = None
    spare = _RUNS_FOR_A_PASSING_ONE
    try:
        while exploration.more:
            if (limit is not None and report.runs >= limit) or (deadline is not None and time.monotonic() >= deadline):
                return report
            with _no_collections():
                error, ended = _run(exploration, fn, report.ok)
            if ended.diverged and isinstance(schedules, str) and schedules != "dpor":
                error = Error(
                    f"the schedule is of another program: after its choices, this one came to {ended.diverged}"
                )
            report.count(ended, exploration.bound)
            if error is None:
                passing = ended.schedule
            elif report.ok:
                report.fail(error, ended)
            if not report.ok:
                spare -= 1
                if passing is not None or spare == 0 or ended.diverged or not exploration.more:
                    break
        report.complete = not exploration.more and not report.uncontrolled
        if not report.ok and passing is not None:
            report.compare(_run(Exploration(passing, 0), fn, True)[1])
    except KeyboardInterrupt:
        report.interrupted = True
    return report


def exploration_of(schedules: str | int, seed: int = 0) -> Exploration:
    """Return what makes the runs of `explore`; raises its errors for schedules that make no sense."""
    if isinstance(schedules, bool) or not isinstance(schedules, str | int):
        raise TypeError(f'schedules is "dpor", a number or a schedule, not {schedules!r}')
    if isinstance(schedules, int) and not 1 <= schedules < 2**64:
        raise ValueError(f"schedules is at least 1 and below 2**64, not {schedules}")
    return Exploration(schedules, seed)


def _check(fn: object, seed: object, limit: object, timeout: object) -> None:
    if not callable(fn):
        raise TypeError(f"fn is a function without arguments, not {type(fn).__name__}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed is an int, not {type(seed).__name__}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ValueError(f"limit is a number of runs, at least 1, or None, not {limit!r}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        raise ValueError(f"timeout is a positive number of seconds or None, not {timeout!r}")


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the garbage collector from running by itself: no schedule chooses when it frees something.

    Nor do runs on free-threaded Python wait as long for a thread as it may stop all of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _call(fn: Callable[[], object]) -> None:
    check_bounds()
    result: Any = fn()
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("explore calls plain functions; let fn call asyncio.run itself")
    if inspect.isgenerator(result):
        raise TypeError("explore calls plain functions; a generator runs only when it is iterated over")


def _run(exploration: Exploration, fn: Callable[[], object], details: bool) -> tuple[BaseException | None, Ended]:
    """Return what the run failed with, or None, and what is known of it."""
    error: BaseException | None = None
    exploration.begin()
    interrupted = True
    try:
        try:
            copy_context().run(_call, fn)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:
            error = raised
        exploration.drain(False)
        interrupted = False
    finally:
        if interrupted:
            exploration.drain(True)
            exploration.end(False)
    ended = exploration.end(details)
    if ended.diverged:
        error = Error(
            f"the program is not repeatable: with the same choices as before, it came to {ended.diverged} instead"
        )
    elif ended.deadlock:
        error = deadlock_of(ended, error)
    elif ended.violation:
        error = violation_of(ended)
    elif error is None and ended.failure is not None:
        error = ended.failure
    if error is not None and finalizing():
        raise error
    return error, ended
