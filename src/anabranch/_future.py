"""The future of a host function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import Context
from typing import Any

Outcome = tuple[bool, Any]  # whether it succeeded; the result or the exception


class StreamFuture(Future[Any]):
    """A future whose result becomes visible together with the stream's progress, before its callbacks run.

    `settle` is called under the future's own condition, so that no other thread sees it done before the
    stream has gone on; callbacks are somebody else's code and must not run under it, so `announce` calls them
    after.
    """

    _silent = False

    def settle(self, outcome: Outcome | None) -> None:
        """Store the outcome. None: the future was cancelled before its function was called."""
        if outcome is None:
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
        """Call the callbacks."""
        self._silent = False
        if self.done() and not self.cancelled():
            self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        if not self._silent:
            super()._invoke_callbacks()  # type: ignore[misc]


def evaluate(
    future: Future[Any], fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Outcome | None:
    """Call the function unless the future was cancelled."""
    if not future.set_running_or_notify_cancel():
        return None
    try:
        # In a context of its own: what it makes current is not there for the next function on this thread.
        return True, Context().run(fn, *args, **kwargs)
    except BaseException as error:
        return failed(error)


def failed(error: BaseException) -> Outcome:
    """Return the outcome of a function that raised."""
    return False, error
