"""What the tests of asyncio share."""

import asyncio


async def wait(awaitable):
    """Await what need not be a coroutine."""
    return await awaitable


async def turns(count=3):
    """Let the other tasks of the loop run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def started(awaitable):
    """Return a task that has come as far as its await."""
    task = asyncio.create_task(wait(awaitable))
    await asyncio.sleep(0)
    return task
