"""What `await` does with streams, events and futures, under asyncio and trio."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    import trio

    from anabranch._stream.host_threads import Notification


class Suspended(Protocol):
    """A task that waits for something to arrive."""

    @property
    def loop(self) -> Hashable:
        """The event loop that it is a task of."""

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any], /) -> None:
        """Have the loop call a function. From any thread. Raises RuntimeError if the loop is closed."""

    def wait(self) -> Generator[Any, None, None]:
        """Suspend the task until it is resumed or cancelled."""

    def wait_for(self, future: Future[Any]) -> Generator[Any, None, None]:
        """Suspend the task until it is resumed or cancelled, which is the future's business where that is usual."""

    def resume(self) -> None:
        """Let the task go on, unless it was cancelled. In the loop."""


def until(notifications: Iterable[Notification], result: Any = None) -> Generator[Any, None, Any]:
    """Wait until every point is reached, without holding up the event loop, and return `result`.

    Cancelling the wait leaves the work alone. A loop that closes before a point is reached is left alone too.
    """
    suspends = False
    for notification in notifications:
        # In this task, whose later work comes after it, and which meets a failure here.
        while not notification.reached():
            suspended = suspend()
            if notification.resume(suspended):
                suspends = True
                yield from suspended.wait()
    if not suspends and (trio := in_trio()):
        # Whatever is awaited there lets others run, and may be cancelled.
        yield from trio.lowlevel.checkpoint().__await__()
    return result


def suspend() -> Suspended:
    """Return the current task, to be suspended."""
    trio = in_trio()
    return TrioTask(trio) if trio else AsyncioTask()


def in_trio() -> Any:
    """Return the module trio if the current task is one of trio's, else None."""
    # Another thread may be importing it, which then has begun but lacks some of its names.
    in_trio_task = getattr(sys.modules.get("trio.lowlevel"), "in_trio_task", None)
    return sys.modules["trio"] if in_trio_task is not None and in_trio_task() else None


def resume(arrived: list[Suspended]) -> None:
    """Let tasks go on, with one call for each event loop. From any thread."""
    loops: dict[Hashable, list[Suspended]] = {}
    for suspended in arrived:
        loops.setdefault(suspended.loop, []).append(suspended)
    for tasks in loops.values():
        # In a closed loop nobody waits any more.
        with suppress(RuntimeError):
            tasks[0].call_soon(_resume_all, tasks)


def _resume_all(tasks: list[Suspended]) -> None:
    for suspended in tasks:
        suspended.resume()


class AsyncioTask:
    """A task of asyncio, or of an event loop like its."""

    __slots__ = ("_future", "loop")

    def __init__(self) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self.loop.create_future()

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any]) -> None:
        """Have the loop call a function."""
        self.loop.call_soon_threadsafe(function, argument)

    def wait(self) -> Generator[Any, None, None]:
        """Suspend the task."""
        yield from self._future

    def wait_for(self, future: Future[Any]) -> Generator[Any, None, None]:
        """Suspend the task. It and the future are cancelled together, as `asyncio.wrap_future` does it."""
        from asyncio import CancelledError

        try:
            yield from self._future
        except CancelledError:
            future.cancel()
            raise
        if future.cancelled():
            raise CancelledError

    def resume(self) -> None:
        """Let the task go on."""
        if not self._future.done():
            self._future.set_result(None)


class TrioTask:
    """A task of trio."""

    __slots__ = ("_task", "_trio", "loop")

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self.loop: trio.lowlevel.TrioToken = trio.lowlevel.current_trio_token()
        self._task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any]) -> None:
        """Have the loop call a function."""
        self.loop.run_sync_soon(function, argument)

    def wait(self) -> Generator[Any, None, None]:
        """Suspend the task."""
        yield from self._trio.lowlevel.wait_task_rescheduled(self._cancel).__await__()

    def wait_for(self, future: Future[Any]) -> Generator[Any, None, None]:
        """Suspend the task."""
        return self.wait()

    def _cancel(self, _: object) -> Any:
        self._task = None
        return self._trio.lowlevel.Abort.SUCCEEDED

    def resume(self) -> None:
        """Let the task go on."""
        task, self._task = self._task, None
        if task is not None:
            self._trio.lowlevel.reschedule(task)
