"""The future of a host function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch._core.core import finalizing, stopped
from anabranch._stream import awaitable
from anabranch._stream.host_threads import check_fork

if TYPE_CHECKING:
    from anabranch._hazards.ordering import PastOf

_T = TypeVar("_T")

Outcome = tuple[bool, Any]  # whether it succeeded; the result or the exception

# How long a wait that begins at the end of the interpreter goes on, in seconds.
LAST_WAIT = 0.02


class StreamFuture(Future[_T]):
    """A future whose result becomes visible together with the stream's progress, before its callbacks run.

    `settle` is called under the future's own condition, so that no other thread sees it done before the
    stream has gone on; callbacks are somebody else's code and must not run under it, so `announce` calls them
    after.
    """

    _silent = False
    _past: PastOf | None = None  # what came before the function's end

    def _observe(self) -> None:
        if self._past is not None:
            self._past.observe()

    def _before_wait(self, timeout: float | None) -> None:
        """Raise what a wait would never tell: after a fork, and at the end of the interpreter."""
        check_fork()
        if timeout is None and finalizing():
            # As for work in streams. A function that was begun may still end.
            wait([self], LAST_WAIT)
            if not (super().done() or self.running()):
                raise stopped("this function will not be called")

    def done(self) -> bool:
        """Whether the function has returned or raised, or was cancelled. What this task does later then comes after."""
        check_fork()
        done = super().done()
        if done:
            self._observe()
        return done

    def result(self, timeout: float | None = None) -> _T:
        """Return what the function returned, waiting for it. What this task does later comes after."""
        self._before_wait(timeout)
        try:
            return super().result(timeout)
        finally:
            self._observe()
            # The traceback of what the function raised has this frame.
            del self

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the function raised, or None, waiting for it. What this task does later comes after."""
        self._before_wait(timeout)
        try:
            return super().exception(timeout)
        finally:
            self._observe()

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Have a function called once this one has returned or raised, or was cancelled."""
        check_fork()
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, _T]:
        """Wait for the function without blocking the event loop. What this task does later comes after."""
        self._before_wait(None)
        try:
            # Not by `asyncio.wrap_future`: a StopIteration of the function's would never arrive there, on Python 3.11.
            # Raised in here it becomes the cause of a RuntimeError, as in every generator.
            suspended = awaitable.suspend()
            self.add_done_callback(lambda _: awaitable.resume([suspended]))
            yield from suspended.wait_for(self)
            return self.result()
        finally:
            self._observe()
            del self

    def settle(self, outcome: Outcome | None) -> None:
        """Store the outcome. None: the future was cancelled before its function was called."""
        # Under the condition: if it is settled now, somebody else has done so, and that stands.
        if outcome is None or (super().done() and not self.cancelled()):
            return
        self._silent = True
        succeeded, value = outcome
        if succeeded:
            self.set_result(value)
        else:
            if not self.running() and not self.set_running_or_notify_cancel():
                return
            self.set_exception(value)

    def announce(self) -> None:
        """Call the callbacks, if it was settled here."""
        if not self._silent:
            return
        self._silent = False
        if super().done() and not self.cancelled():
            self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        if not self._silent:
            super()._invoke_callbacks()  # type: ignore[misc]


def begin(future: Future[Any]) -> bool:
    """Return whether the function is to be called for the future: not if that was cancelled, or settled by others."""
    try:
        return future.set_running_or_notify_cancel()
    except RuntimeError:
        return False


def evaluate(future: Future[Any], call: Callable[[], Any]) -> Outcome | None:
    """Call the function unless the future was cancelled."""
    if not begin(future):
        return None
    try:
        # In a context of its own: what it makes current is not there for the next function on this thread.
        return True, Context().run(call)
    except BaseException as error:
        return failed(error)
    finally:
        # The future gets the exception, whose traceback has this frame.
        del future, call


def failed(error: BaseException) -> Outcome:
    """Return the outcome of a function that raised."""
    return False, error
