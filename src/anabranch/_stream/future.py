"""The future of a host function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch._core.core import finalizing, stopped
from anabranch._stream import awaitable
from anabranch._stream.host_threads import check_fork, refuse_own_future

if TYPE_CHECKING:
    from anabranch._hazards.ordering import PastOf
    from anabranch._stream.host_node import CapturedIn, SkippedBy

_T = TypeVar("_T")

Outcome = tuple[bool, Any]  # (succeeded, result or exception)

# Seconds that a wait lasts if it begins while the interpreter exits.
LAST_WAIT = 0.02


class StreamFuture(Future[_T]):
    """A future that completes together with its stream's progress, before its callbacks run.

    The caller of `resolve` holds the future's condition, so no thread sees the future done before the stream has
    advanced. Callbacks are foreign code and must not run under the condition, so `announce` runs them afterwards.
    """

    _silent = False
    _stream = 0  # address of the stream that calls the function; 0 for one of a graph
    _past: PastOf | None = None  # clock at the function's end
    _captured: CapturedIn | None = None
    _skipped: SkippedBy | None = None

    def _observe(self) -> None:
        if self._past is not None:
            self._past.observe()

    def _see(self) -> None:
        """Note that the program gets the outcome."""
        self._observe()
        if self._skipped is not None:
            self._skipped.note_raised()

    def _before_wait(self, timeout: float | None) -> None:
        """Raise where a wait could not end.

        That is after a fork, in the function's capture, in a function of its stream, and while the interpreter exits.
        """
        check_fork()
        if self._stream and not super().done():
            refuse_own_future(self._stream)
        if self._captured is not None and not super().done():
            self._captured.refuse_wait()
        if timeout is None and finalizing():
            # Waits for streams behave the same. A function that has begun may still end.
            wait([self], LAST_WAIT)
            if not (super().done() or self.running()):
                raise stopped("this function will not be called")

    def done(self) -> bool:
        """Whether the function has ended or was cancelled. If so, later work of this task comes after it."""
        check_fork()
        done = super().done()
        if done:
            self._observe()
        return done

    def result(self, timeout: float | None = None) -> _T:
        """Wait for the function and return its result. Later work of this task comes after the function."""
        self._before_wait(timeout)
        try:
            return super().result(timeout)
        finally:
            self._see()
            # The traceback of the function's exception contains this frame.
            del self

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the function and return its exception, or None. Later work of this task comes after the function."""
        self._before_wait(timeout)
        try:
            return super().exception(timeout)
        finally:
            self._see()

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Call `fn` once the function has ended or was cancelled."""
        check_fork()
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, _T]:
        """Wait for the function without blocking the event loop. Later work of this task comes after it."""
        self._before_wait(None)
        try:
            # `asyncio.wrap_future` would lose a StopIteration of the function on Python 3.11. Raised here, it becomes
            # the cause of a RuntimeError, as in every generator.
            suspended = awaitable.suspend()
            self.add_done_callback(lambda _: awaitable.resume([suspended]))
            yield from suspended.wait_for(self)
            return self.result()
        finally:
            self._observe()
            del self

    def resolve(self, outcome: Outcome | None) -> None:
        """Store the outcome. None: the future was cancelled before its function was called."""
        # The caller holds the condition. A future that is already done was completed by other code and stays unchanged.
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
        """Run the callbacks if `resolve` stored the outcome."""
        if not self._silent:
            return
        self._silent = False
        if super().done() and not self.cancelled():
            self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        if not self._silent:
            super()._invoke_callbacks()  # type: ignore[misc]


def begin(future: Future[Any]) -> bool:
    """Return whether to call the function: not if the future was cancelled or completed elsewhere."""
    try:
        return future.set_running_or_notify_cancel()
    except RuntimeError:
        return False


def evaluate(future: Future[Any], call: Callable[[], Any]) -> Outcome | None:
    """Call the function unless the future was cancelled."""
    if not begin(future):
        return None
    try:
        # Its own context: the function's current stream and device must not leak into the next one on this thread.
        return True, Context().run(call)
    except BaseException as error:
        return failed(error)
    finally:
        # The future holds the exception, whose traceback contains this frame.
        del future, call


def failed(error: BaseException) -> Outcome:
    """Return the outcome of a function that raised."""
    return False, error
