"""The future of a host function while schedules are explored.

The host sees that the future is done only at calls that exploration knows. Waits of `concurrent.futures` for several
futures block on a `threading.Event`, where no thread would run the streams, so they get an event that runs them.

Callbacks run on the function's thread, as part of it. Those that were added in an event loop run in the loop, which a
function's thread would wake at a moment that no exploration knows. Nor does a thread run the streams while the loop has
nothing to do, so a call in the loop does.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from anabranch._core.errors import Error
from anabranch._stream.future import StreamFuture
from anabranch._stream.host_threads import uncontrolled, wait_for_hosts

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from anabranch._stream.host_threads import Notification

_T = TypeVar("_T")

_numbers = itertools.count()

# Future states of `concurrent.futures`, and what they appear as until the host has queried the future.
_UNSEEN = {"FINISHED": "RUNNING", "CANCELLED_AND_NOTIFIED": "CANCELLED"}

# An exploration takes more questions in a row for a wait.
_MOST_LOOKS = 3


class ExploredFuture(StreamFuture[_T]):
    """A `StreamFuture` whose waits run the streams."""

    _now: str
    _seen = False
    _work: Notification | None = None
    _alone = True
    _announcing = 0  # the thread that runs the callbacks
    _looks = 0  # of a busy event loop
    _loop: AbstractEventLoop | None = None  # which is to run the callbacks

    def __init__(self) -> None:
        super().__init__()
        self._waiters = _Waiters(self)
        self.number = next(_numbers)

    def explore(self, work: Notification, alone: bool = True) -> None:
        """Set the work that is over when the function is, once it is enqueued. Not `alone`: only later than that."""
        self._work, self._alone = work, alone

    @property
    def _state(self) -> str:
        return self._now if self._seen or self._announcing == get_ident() else _UNSEEN.get(self._now, self._now)

    @_state.setter
    def _state(self, state: str) -> None:
        self._now = state
        if state == "FINISHED" and not self._silent:
            self._seen = True  # by other code than the function

    def _look(self) -> bool:
        with self._condition:  # held from the end of the function until its outcome is stored
            over = self._now in _UNSEEN
            self._seen = self._seen or (over and self._announcing != get_ident())
        if self._seen and self._loop is not None:
            self._invoke_callbacks()
        return over

    def settled(self) -> bool:
        """Return whether the function is over. Exploration tries both answers."""
        if not self._seen and self._work is not None:
            if not self._alone:
                uncontrolled()
            if not self._work.ask():
                return False
        return self._look()

    def settle(self) -> None:
        """Wait until the function is over."""
        before = None
        while True:
            work = self._work
            if work is not None and work is not before:
                if not self._alone:
                    uncontrolled()
                work.reached()
            elif not (self._look() or self.cancelled()):
                # Its graph was not launched, or did not call it. Another thread may launch the graph now.
                wait_for_hosts()
            if self._look() or self.cancelled():
                return
            if before is work is self._work:
                raise Error("deadlock: nobody launches a graph that calls this function")
            before = work

    def _before_wait(self, timeout: float | None) -> None:
        super()._before_wait(timeout)
        self.settle()

    def done(self) -> bool:
        """Whether the function has ended or was cancelled."""
        self.settled()
        return super().done()

    def cancel(self) -> bool:
        """Cancel the function if it has not begun. Exploration tries both answers."""
        if not self.cancelled():
            self.settled()
        return super().cancel()

    def is_found_over(self, idle: bool) -> bool:
        """Return whether it is over, for an event loop: a busy one, which may look for ever, asks no more some time."""
        self._looks = 0 if idle else self._looks + 1
        if idle or self._looks <= _MOST_LOOKS:
            return self.settled()
        uncontrolled()
        return False

    def give_up(self, error: Exception) -> None:
        """Fail with what a wait for the function raised: an event loop cannot raise it."""
        self._work = None
        with suppress(InvalidStateError):
            self.set_exception(error)
        self._look()

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Call `fn` once the function has ended or was cancelled: here if it has, or in the event loop that runs."""
        loop = _running_loop()
        if loop is None:
            self.settled()
        elif not (self._seen or self._loop is loop or self.cancelled()):
            self._loop = loop
            _wait_in(loop, self)
        super().add_done_callback(fn)

    def announce(self) -> None:
        """Run the callbacks if `resolve` stored the outcome, but for those that an event loop runs."""
        if self._loop is not None and not self._loop.is_closed():
            self._silent = False
            return
        self._announcing = get_ident()
        try:
            super().announce()
        finally:
            self._announcing = 0

    def _invoke_callbacks(self) -> None:
        if not self._silent:
            self._loop = None
        super()._invoke_callbacks()

    def tell(self, waiter: Any) -> None:
        """Tell a waiter of `concurrent.futures` that the function is over."""
        try:
            failed = super().exception(0) is not None
        except CancelledError:
            waiter.add_cancelled(self)
        else:
            (waiter.add_exception if failed else waiter.add_result)(self)


_waiting: WeakKeyDictionary[AbstractEventLoop, list[ExploredFuture[Any]]] = WeakKeyDictionary()


def _running_loop() -> AbstractEventLoop | None:
    asyncio = sys.modules.get("asyncio")
    return None if asyncio is None else asyncio._get_running_loop()


def _wait_in(loop: AbstractEventLoop, future: ExploredFuture[Any]) -> None:
    waiting = _waiting.setdefault(loop, [])
    if not waiting:
        loop.call_soon(_go_on, loop)
    waiting.append(future)


def _go_on(loop: AbstractEventLoop) -> None:
    """Have futures that are over run their callbacks. If none is, and the loop has nothing to do, wait for one."""
    waiting = _waiting[loop]
    idle = not (getattr(loop, "_ready", ()) or getattr(loop, "_stopping", False))
    over = False
    if not idle or len(waiting) > 1:
        for future in waiting:
            over |= future.is_found_over(idle)
    if idle and not over:
        try:
            waiting[0].settle()
        except Exception as error:
            waiting[0].give_up(error)
    waiting[:] = [future for future in waiting if future._loop is loop]
    if waiting:
        loop.call_soon(_go_on, loop)


class _Waiters(list[Any]):
    """The waiters of a future. Their own wait notifies them, not the end of the function."""

    def __init__(self, future: ExploredFuture[Any]) -> None:
        super().__init__()
        self._future = future

    def append(self, waiter: Any, /) -> None:
        super().append(waiter)
        if not isinstance(waiter.event, _Event):
            waiter.event = _Event(waiter)
        if not self._future.cancelled() and self._future._state != "FINISHED":
            waiter.event.left.append(self._future)
            waiter.event.left.sort(key=lambda future: future.number)  # they come from a set, in the order of addresses

    def __iter__(self) -> Any:
        return iter(())


class _Event(threading.Event):
    """The event that a wait for several futures blocks on.

    Exploration chooses which future completes first: the event queries each, and if none is done, waits for the first
    one. If the order makes no difference, it queries none.
    """

    def __init__(self, waiter: Any) -> None:
        super().__init__()
        self.left: list[ExploredFuture[Any]] = []
        self._waiter = waiter
        self._all = hasattr(waiter, "num_pending_calls")
        self._one_by_one = hasattr(waiter, "finished_futures") and hasattr(waiter, "lock")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait as long as it takes, since a run has no clock."""
        while not self.is_set():
            if not self.left:
                return super().wait(timeout)  # for futures of others
            over = [] if self._all or len(self.left) == 1 else self._ask()
            if not over:
                self.left[0].settle()
                over = self.left[:1]
            for future in over:
                self.left.remove(future)
                future.tell(self._waiter)
        return True

    def _ask(self) -> list[ExploredFuture[Any]]:
        if self._one_by_one:
            return next(([future] for future in self.left if future.settled()), [])
        return [future for future in self.left if future.settled()]
