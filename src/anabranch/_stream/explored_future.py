"""The future of a host function while schedules are explored.

The host sees that the future is done only at calls that exploration knows. Waits of `concurrent.futures` for several
futures block on a `threading.Event`, where no thread would run the streams, so they get an event that runs them.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch._stream.future import StreamFuture

if TYPE_CHECKING:
    from anabranch._stream.host_threads import Notification

_T = TypeVar("_T")

_numbers = itertools.count()

# Future states of `concurrent.futures`, and what they appear as until the host has queried the future.
_UNSEEN = {"FINISHED": "RUNNING", "CANCELLED_AND_NOTIFIED": "CANCELLED"}


class ExploredFuture(StreamFuture[_T]):
    """A `StreamFuture` whose waits run the streams."""

    _now: str
    _seen = False
    _work: Notification | None = None

    def __init__(self) -> None:
        super().__init__()
        self._waiters = _Waiters(self)
        self.number = next(_numbers)

    def explore(self, work: Notification) -> None:
        """Set the call, once it is enqueued."""
        self._work = work

    @property
    def _state(self) -> str:
        return self._now if self._seen else _UNSEEN.get(self._now, self._now)

    @_state.setter
    def _state(self, state: str) -> None:
        self._now = state
        if state == "FINISHED" and not self._silent:
            self._seen = True  # by other code than the function

    def _look(self) -> bool:
        with self._condition:  # held from the end of the function until its outcome is stored
            self._seen = self._now in _UNSEEN
        return self._seen

    def settled(self) -> bool:
        """Return whether the function is over. Exploration tries both answers."""
        if not self._seen and self._work is not None:
            self._work.ask()
        return self._look()

    def settle(self) -> None:
        """Wait until the function is over."""
        if self._work is not None:
            self._work.reached()
        self._look()

    def _before_wait(self, timeout: float | None) -> None:
        super()._before_wait(timeout)
        self.settle()

    def done(self) -> bool:
        """Whether the function has ended or was cancelled."""
        self.settled()
        return super().done()

    def tell(self, waiter: Any) -> None:
        """Tell a waiter of `concurrent.futures` that the function is over."""
        try:
            failed = super().exception(0) is not None
        except CancelledError:
            waiter.add_cancelled(self)
        else:
            (waiter.add_exception if failed else waiter.add_result)(self)


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
