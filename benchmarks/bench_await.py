"""`await` under asyncio."""

import asyncio
from collections.abc import Iterator

from harness import OURS, Case, Timed, implementation, repeat

import anabranch as ab

ours = implementation(OURS)


async def wait(awaitable: ab.Stream | ab.Event) -> None:
    await awaitable


@ours("await.function")
def function() -> Iterator[Case]:
    """Await a stream with a host function in it, one after the other."""
    stream = ab.Stream("cpu")

    async def one_by_one(calls: int) -> None:
        for _ in repeat(calls):
            stream.submit(int)
            await stream

    with asyncio.Runner() as runner:
        yield Timed(lambda calls: runner.run(one_by_one(calls)))


@ours("await.held1000")
def held() -> Iterator[Case]:
    """Await an event that something holds, in 1000 tasks that then go on at once."""
    root = ab.Stream("cpu")

    async def at_once(calls: int) -> None:
        gate = ab.testing.Gate(root)
        tasks = [asyncio.create_task(wait(root.record_event())) for _ in repeat(calls)]
        await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(*tasks)

    with asyncio.Runner() as runner:
        yield Timed(lambda calls: runner.run(at_once(calls)), calls=1000)


@ours("await.to_host_4k")
def to_host() -> Iterator[Case]:
    """Copy 4 KiB to the host and await that, one after the other."""
    array = ab.zeros(1024, device="cpu")

    async def one_by_one(calls: int) -> None:
        for _ in repeat(calls):
            await ab.to_host(array)

    with asyncio.Runner() as runner:
        yield Timed(lambda calls: runner.run(one_by_one(calls)))
