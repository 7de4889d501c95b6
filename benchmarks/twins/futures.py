"""The same through `concurrent.futures.ThreadPoolExecutor` with as many threads as there are cores.

A task is the cheapest Python function that does the work, with no native kernel to call; a mark in a queue is a task
that does nothing.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from harness import Case, Timed, implementation, repeat

futures = implementation("futures")
one_thread = implementation("futures (1 thread)")


def noop(*arguments: object) -> None:
    pass


def enqueue(*arguments: object) -> Iterator[Case]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending: list[Future[None]] = []

        def batch(calls: int) -> None:
            submit, keep = pool.submit, pending.append
            for _ in repeat(calls):
                keep(submit(noop, *arguments))

        def drain() -> None:
            while pending:
                pending.pop().result()

        yield Timed(batch, drain)


@futures("launch.enqueue_empty")
def enqueue_empty() -> Iterator[Case]:
    return enqueue(1)


@futures("launch.4args")
def four_arguments() -> Iterator[Case]:
    x, y, z = ([0.0] for _ in range(3))
    return enqueue(1, 2.0, x, y, z)


@futures("submit.noop")
def submit() -> Iterator[Case]:
    return enqueue()


@futures("event.record")
def record() -> Iterator[Case]:
    return enqueue()


@futures("launch.4args_held")
def four_arguments_held() -> Iterator[Case]:
    x, y, z = ([0.0] for _ in range(3))
    gate = threading.Event()
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:

        def hold() -> None:
            gate.clear()
            for _ in range(threads):
                pool.submit(gate.wait)

        def batch(calls: int) -> None:
            submit = pool.submit
            for _ in repeat(calls):
                submit(noop, 1, 2.0, x, y, z)

        def drain() -> None:
            gate.set()
            pool.submit(noop).result()
            hold()

        hold()
        yield Timed(batch, drain)
        gate.set()


@futures("launch.chain1000")
def chain() -> Iterator[Case]:
    """Each task waits for the future of the one before, which was taken up earlier: no number of threads deadlocks."""
    y = [0]

    def increment(before: Future[None] | None) -> None:
        if before is not None:
            before.result()
        y[0] += 1

    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def batch(calls: int) -> None:
            last = None
            for _ in repeat(calls):
                last = pool.submit(increment, last)
            if last is not None:
                last.result()

        yield Timed(batch, calls=1000)


@one_thread("launch.chain1000")
def chain_of_one_thread() -> Iterator[Case]:
    """A pool of one thread is its own order: no task has to wait."""
    y = [0]

    def increment() -> None:
        y[0] += 1

    with ThreadPoolExecutor(1) as pool:

        def batch(calls: int) -> None:
            last = None
            for _ in repeat(calls):
                last = pool.submit(increment)
            if last is not None:
                last.result()

        yield Timed(batch, calls=1000)


@futures("event.query")
def query() -> Iterator[Case]:
    future: Future[None] = Future()
    future.set_result(None)

    def batch(calls: int) -> None:
        done = future.done
        for _ in repeat(calls):
            done()

    yield Timed(batch)


@futures("stream.synchronize_idle")
def synchronize_idle() -> Iterator[Case]:
    future: Future[None] = Future()
    future.set_result(None)

    def batch(calls: int) -> None:
        result = future.result
        for _ in repeat(calls):
            result()

    yield Timed(batch)


@futures("event.create_destroy")
def create_destroy() -> Iterator[Case]:
    def batch(calls: int) -> None:
        make = Future
        for _ in repeat(calls):
            make()

    yield Timed(batch)


@futures("await.function")
def await_function() -> Iterator[Case]:
    with asyncio.Runner() as runner, ThreadPoolExecutor(1) as pool:

        async def one_by_one(calls: int) -> None:
            for _ in repeat(calls):
                await asyncio.wrap_future(pool.submit(int))

        yield Timed(lambda calls: runner.run(one_by_one(calls)))


@futures("await.held1000")
def await_held() -> Iterator[Case]:
    with asyncio.Runner() as runner, ThreadPoolExecutor(1) as pool:

        async def wait() -> None:
            await asyncio.wrap_future(pool.submit(noop))

        async def at_once(calls: int) -> None:
            gate = threading.Event()
            pool.submit(gate.wait)
            tasks = [asyncio.create_task(wait()) for _ in repeat(calls)]
            await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(*tasks)

        yield Timed(lambda calls: runner.run(at_once(calls)), calls=1000)


@futures("await.to_host_4k")
def await_copy() -> Iterator[Case]:
    """`asyncio.to_thread(array.copy)`, as people do who have only a function that blocks."""
    array = np.zeros(1024, "float32")

    async def one_by_one(calls: int) -> None:
        for _ in repeat(calls):
            await asyncio.to_thread(array.copy)

    with asyncio.Runner() as runner:
        yield Timed(lambda calls: runner.run(one_by_one(calls)))
