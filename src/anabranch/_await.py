"""What `await` does with a stream or an event under asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator

    from anabranch._host import Notification


def until(notifications: list[Notification]) -> Generator[Any, None, None]:
    """Wait until every point is reached, without holding up the event loop.

    Cancelling the wait leaves the work alone. A loop that closes before a point is reached is left alone too.
    """
    for notification in notifications:
        if not notification.reached():
            yield from _one(notification)


def _one(notification: Notification) -> Generator[Any, None, None]:
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def arrived(error: BaseException | None) -> None:
        if loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(settle, error)
        except RuntimeError:
            # Closed in between: nobody waits any more.
            return

    if notification.subscribe(arrived):
        yield from future
    # In this task, whose later work comes after it.
    notification.reached()
