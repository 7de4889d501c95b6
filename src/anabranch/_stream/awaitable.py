"""`await` of streams, events and futures, under asyncio and trio."""

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
    """A suspended task."""

    @property
    def loop(self) -> Hashable:
        """The event loop of the task."""

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any], /) -> None:
        """Schedule a call in the loop. Any thread. Raises RuntimeError if the loop is closed."""

    def wait(self) -> Generator[Any, None, None]:
        """Suspend the task until it is resumed or cancelled."""

    def wait_for(self, future: Future[Any]) -> Generator[Any, None, None]:
        """Suspend the task until it is resumed or cancelled; cancels the future too where the framework does so."""

    def resume(self) -> None:
        """Resume the task unless it was cancelled. Runs in the loop."""


def until(notifications: Iterable[Notification], result: Any = None) -> Generator[Any, None, Any]:
    """Wait for every point without blocking the event loop, then return `result`.

    Cancelling the wait does not affect the work, nor does closing the loop before the points are reached.
    """
    suspends = False
    for notification in notifications:
        # Checked in this task: its later work is ordered after the point, and a failure is raised here.
        while not notification.reached():
            suspended = suspend()
            if notification.resume(suspended):
                suspends = True
                yield from suspended.wait()
    if not suspends and (trio := in_trio()):
        # Every await in trio is a checkpoint: other tasks may run, and this one may be cancelled.
        yield from trio.lowlevel.checkpoint().__await__()
    return result


def suspend() -> Suspended:
    """Return the current task, for suspension."""
    trio = in_trio()
    return TrioTask(trio) if trio else AsyncioTask()


def in_trio() -> Any:
    """Return the module trio if the current task is a trio task, else None."""
    # Another thread may still be importing trio, so the module may lack names.
    in_trio_task = getattr(sys.modules.get("trio.lowlevel"), "in_trio_task", None)
    return sys.modules["trio"] if in_trio_task is not None and in_trio_task() else None


def resume(arrived: list[Suspended]) -> None:
    """Resume tasks, with one call per event loop. Any thread."""
    loops: dict[Hashable, list[Suspended]] = {}
    for suspended in arrived:
        loops.setdefault(suspended.loop, []).append(suspended)
    for tasks in loops.values():
        # Nothing waits in a closed loop any more.
        with suppress(RuntimeError):
            tasks[0].call_soon(_resume_all, tasks)


def _resume_all(tasks: list[Suspended]) -> None:
    for suspended in tasks:
        suspended.resume()


class AsyncioTask:
    """A task of asyncio or a compatible event loop."""

    __slots__ = ("_future", "loop")

    def __init__(self) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self.loop.create_future()

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any]) -> None:
        """Schedule a call in the loop."""
        self.loop.call_soon_threadsafe(function, argument)

    def wait(self) -> Generator[Any, None, None]:
        """Suspend the task."""
        yield from self._future

    def wait_for(self, future: Future[Any]) -> Generator[Any, None, None]:
        """Suspend the task. The task and the future cancel each other, as with `asyncio.wrap_future`."""
        from asyncio import CancelledError

        try:
            yield from self._future
        except CancelledError:
            future.cancel()
            raise
        if future.cancelled():
            raise CancelledError

    def resume(self) -> None:
        """Resume the task."""
        if not self._future.done():
            self._future.set_result(None)


class TrioTask:
    """A trio task."""

    __slots__ = ("_task", "_trio", "loop")

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self.loop: trio.lowlevel.TrioToken = trio.lowlevel.current_trio_token()
        self._task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def call_soon(self, function: Callable[[list[Any]], None], argument: list[Any]) -> None:
        """Schedule a call in the loop."""
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
        """Resume the task."""
        task, self._task = self._task, None
        if task is not None:
            self._trio.lowlevel.reschedule(task)
