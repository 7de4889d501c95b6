"""The current stream where contexts go from thread to thread, and from task to task."""

import asyncio
import contextvars
import gc
import weakref

import pytest

import anabranch as ab
from anabranch.testing import Gate


async def in_worker(function):
    """Call it on a worker thread, whose context variables come back as they are then, as asgiref has it."""
    context = contextvars.copy_context()
    found = await asyncio.get_running_loop().run_in_executor(None, context.run, function)
    for variable, value in context.items():
        variable.set(value)
    return found


def test_a_context_that_a_worker_used_comes_back(device, other_device):
    async def main():
        outer, inner = ab.Stream(device, name="outer"), ab.Stream(other_device, name="inner")
        with outer, ab.hazards("check"), Gate(outer):
            array = ab.zeros(8, device=device)
            with inner:
                assert await in_worker(lambda: ab.current_stream(device)) == ab.default_stream(device)
                assert (ab.current_stream(device), ab.current_stream(other_device)) == (outer, inner)
                assert ab.current_device() == other_device
                with pytest.raises(ab.RaceError):
                    ab.fill(array, 1, stream=ab.Stream(device))
                await in_worker(lambda: ab.Stream(device).use())
                assert ab.current_stream(device) == outer
            assert ab.current_device() == device
            assert ab.current_stream(other_device) == ab.default_stream(other_device)
        assert ab.current_stream(device) == ab.default_stream(device)

    asyncio.run(main())


def test_what_was_known_comes_back_with_the_context(device):
    """Else an order that the task made is reported missing."""

    async def main():
        first, second = ab.Stream(device), ab.Stream(device)
        array = ab.zeros(8, device=device, stream=first)
        first.synchronize()
        await in_worker(lambda: ab.current_stream(device))
        ab.fill(array, 1, stream=second)
        await second

    with ab.hazards("check"):
        asyncio.run(main())


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_a_task_that_a_worker_asked_for_starts_from_the_task_that_asked_the_worker(device, used):
    """Whether or not the worker had a state of its own."""

    async def main():
        loop, stream = asyncio.get_running_loop(), ab.Stream(device)

        async def current():
            return ab.current_stream(device)

        def ask():
            if used:
                ab.Stream(device).use()
            return asyncio.run_coroutine_threadsafe(current(), loop).result(10)

        with stream:
            assert await asyncio.to_thread(ask) == stream

    asyncio.run(main())


@pytest.mark.parametrize("threads", [6, 30])
def test_threads_that_hand_on_one_context_keep_few_states(device, in_thread, threads):
    """A few find their own again; of many the first ones' are not kept for good."""
    streams, last = [], []

    def hand_on(left):
        stream = ab.Stream(device)
        streams.append(weakref.ref(stream))
        with stream:
            context = contextvars.copy_context()
            if left:
                in_thread(context.run, hand_on, left - 1).result(10)
                for variable, value in context.items():
                    variable.set(value)
                assert threads > 8 or ab.current_stream(device) == stream
            else:
                last.append(context)

    in_thread(hand_on, threads).result(10)
    gc.collect()
    assert sum(stream() is not None for stream in streams) < 12
    assert last


def chain(start_next, scope, length=100):
    """Jobs that start their successors from within a scope; what is alive of the scopes when the last one runs."""
    scopes = []

    async def main():
        done = asyncio.get_running_loop().create_future()

        def job(left):
            with scope() as entered:
                scopes.append(weakref.ref(entered))
                if left:
                    start_next(job, left - 1)
            del entered
            if not left:
                gc.collect()
                done.set_result(sum(each() is not None for each in scopes))

        job(length)
        return await done

    return asyncio.run(main())


def by_task(job, left):
    async def run():
        job(left)

    tasks.add(task := asyncio.get_running_loop().create_task(run()))
    task.add_done_callback(tasks.discard)


def by_callback(job, left):
    asyncio.get_running_loop().call_soon(job, left)


tasks: set[asyncio.Task] = set()


@pytest.mark.parametrize("start_next", [by_task, by_callback])
def test_jobs_that_start_their_successors_within_a_scope_keep_no_streams(device, start_next):
    # Of a hundred. Without the interpreter lock, what several threads have counted goes a moment later.
    assert chain(start_next, lambda: ab.Stream(device)) < 10


def test_the_streams_of_other_devices_outlive_the_scopes(device, other_device):
    """What was made current stays so in a task, also when the scope was left where it was entered."""
    found = []

    async def main():
        async def look(after):
            await after.wait()
            found.append((ab.current_device(), ab.current_stream(device), ab.current_stream(other_device)))

        left, a, b = asyncio.Event(), ab.Stream(device), ab.Stream(other_device)
        with a, b, ab.Device(device.alias):
            task = asyncio.create_task(look(left))
        left.set()
        await task
        assert found == [(device, a, b)]

    asyncio.run(main())


def test_a_scope_may_be_left_in_a_task_of_a_task(device):
    before, stream, outer = ab.current_stream(device), ab.Stream(device), ab.Stream(device)

    async def leave():
        assert ab.current_stream(device) == stream
        stream.__exit__(None, None, None)
        assert ab.current_stream(device) == outer
        outer.__exit__(None, None, None)
        assert ab.current_stream(device) == before

    async def between():
        assert ab.current_stream(device) == stream
        await asyncio.create_task(leave())
        assert ab.current_stream(device) == stream

    async def main():
        outer.__enter__()
        stream.__enter__()
        await asyncio.create_task(between())
        await asyncio.create_task(leave())
        stream.__exit__(None, None, None)
        outer.__exit__(None, None, None)
        assert ab.current_stream(device) == before

    asyncio.run(main())
