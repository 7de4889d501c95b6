"""The current stream belongs to the task: to a thread, and inside asyncio to an asyncio task."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import anabranch as ab


def current(device):
    """What is current: the device, and the stream of `device`."""
    return ab.current_device(), ab.current_stream(device)


# -- threads --


async def in_executor(function):
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(None, context.run, function)


async def in_loop_of_thread(function):
    async def call():
        return function()

    return await asyncio.to_thread(asyncio.run, call())


CALLS = {
    "pool": lambda function: ThreadPoolExecutor(1).submit(function).result(10),
    "asyncio.to_thread": lambda function: asyncio.run(asyncio.to_thread(function)),
    "executor with a copied context": lambda function: asyncio.run(in_executor(function)),
    "loop of another thread": lambda function: asyncio.run(in_loop_of_thread(function)),
    "submit": lambda function: ab.Stream().submit(function).result(10),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_another_thread_starts_with_the_defaults(call, device, other_device, first_device):
    with ab.Stream(device), ab.Stream(other_device):
        assert call(lambda: current(device)) == (first_device, ab.default_stream(device))


def test_a_new_thread_starts_with_the_defaults(device, other_device, in_thread, first_device):
    with ab.Stream(device), ab.Stream(other_device):
        assert in_thread(current, device).result(10) == (first_device, ab.default_stream(device))


def test_a_thread_run_in_a_copied_context_starts_with_the_defaults(device, in_thread, first_device):
    with ab.Stream(device):
        context = contextvars.copy_context()
        assert in_thread(context.run, current, device).result(10) == (first_device, ab.default_stream(device))


def test_a_scope_may_be_left_in_a_copy_of_the_context_it_was_entered_in(device):
    before, stream = ab.current_stream(device), ab.Stream(device)
    stream.__enter__()
    context = contextvars.copy_context()
    context.run(stream.__exit__, None, None, None)
    assert context.run(ab.current_stream, device) == before
    assert ab.current_stream(device) == stream
    stream.__exit__(None, None, None)
    assert ab.current_stream(device) == before


def test_threads_never_see_each_others_stream(device, in_threads):
    meet = threading.Barrier(8, timeout=10)

    def body(_):
        with ab.Stream(device) as stream:
            meet.wait()
            same = ab.current_stream() == stream
            meet.wait()
        return same, ab.current_stream(device) == ab.default_stream(device)

    assert in_threads(8, body) == [(True, True)] * 8


def test_one_stream_may_be_current_in_many_threads(device, in_threads):
    stream = ab.Stream()

    def body(_):
        with stream:
            return ab.current_stream(device) == stream

    assert all(in_threads(8, body))


def test_one_host_function_leaves_no_current_stream_to_the_next(device):
    def use():
        ab.Stream(device).use()

    stream = ab.Stream()
    for _ in range(20):
        stream.submit(use)
        assert stream.submit(ab.current_stream, device).result(10) == ab.default_stream(device)


# -- asyncio tasks --


def test_tasks_never_see_each_others_stream(device, other_device):
    async def body(index, turn):
        mine = (device, other_device)[index % 2]
        with ab.Stream(mine) as stream:
            for _ in range(5):
                await turn.wait()
                assert current(mine) == (mine, stream)
            with ab.Stream(device) as inner:
                await turn.wait()
                assert current(device) == (device, inner)
            await turn.wait()
            assert current(mine) == (mine, stream)
        await turn.wait()
        return ab.current_device(), ab.current_stream(device)

    async def main():
        turn = asyncio.Barrier(10)
        return await asyncio.gather(*(body(index, turn) for index in range(10)))

    before = current(device)
    assert asyncio.run(main()) == [before] * 10
    assert current(device) == before


def test_a_task_keeps_its_stream_across_the_await_of_a_stream(device):
    async def body():
        with ab.Stream() as stream:
            for _ in range(3):
                stream.submit(int)
                await stream
                assert ab.current_stream(device) == stream

    async def main():
        await asyncio.gather(*(body() for _ in range(20)))

    asyncio.run(main())


def test_a_new_task_starts_with_the_stream_and_device_of_its_creator(device, other_device):
    async def body(leave):
        await leave.wait()
        return current(other_device)

    async def main():
        leave = asyncio.Event()
        with ab.Stream(device), ab.Stream(other_device) as stream:
            task = asyncio.create_task(body(leave))
        leave.set()
        assert ab.current_device() is device
        assert await task == (other_device, stream)

    asyncio.run(main())


def test_tasks_of_a_group_start_with_the_stream_of_their_creator_and_keep_their_own(device):
    async def body(expected):
        assert ab.current_stream(device) == expected
        with ab.Stream() as stream:
            await stream
            await asyncio.sleep(0)
            assert ab.current_stream(device) == stream
        assert ab.current_stream(device) == expected

    async def main():
        with ab.Stream() as stream:
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(body(stream))
                with ab.Stream() as inner:
                    group.create_task(body(inner))
            assert ab.current_stream(device) == stream

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="tasks begin at once from Python 3.12 on")
def test_a_task_that_begins_at_once_keeps_its_stream_from_its_creator(device):
    async def body(expected):
        assert ab.current_stream(device) == expected
        ab.Stream().use()
        own = ab.current_stream(device)
        await asyncio.sleep(0)
        assert ab.current_stream(device) == own

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        with ab.Stream() as stream:
            task = asyncio.create_task(body(stream))
            assert ab.current_stream(device) == stream
            await task
            assert ab.current_stream(device) == stream

    asyncio.run(main())


def test_a_callback_has_the_stream_of_who_asked_for_it(device):
    async def main():
        found = asyncio.Queue()
        with ab.Stream() as stream:
            asyncio.get_running_loop().call_soon(lambda: found.put_nowait(ab.current_stream(device)))
        assert await found.get() == stream

    asyncio.run(main())


def test_the_first_task_starts_with_the_stream_of_the_code_that_runs_the_loop(device):
    async def main():
        return current(device)

    with ab.Stream() as stream:
        assert asyncio.run(main()) == (device, stream)


def test_a_task_changes_nothing_for_its_creator(device, other_device):
    async def body():
        ab.Stream(other_device).use()
        await asyncio.sleep(0)

    async def main():
        with ab.Stream() as stream:
            await asyncio.create_task(body())
            assert current(device) == (device, stream)

    asyncio.run(main())


def test_what_a_task_uses_ends_with_it(device):
    async def main():
        ab.Stream().use()

    before = current(device)
    asyncio.run(main())
    assert current(device) == before


def test_a_cancelled_task_restores_its_stream(device):
    async def body(inside, after):
        before = current(device)
        inside.set()
        try:
            with ab.Stream():
                await asyncio.Event().wait()
        finally:
            after.append(current(device) == before)

    async def main():
        inside, after = asyncio.Event(), []
        task = asyncio.create_task(body(inside, after))
        await inside.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return after

    assert asyncio.run(main()) == [True]


def test_an_asynchronous_generator_runs_with_the_stream_of_its_task(device):
    async def streams():
        while True:
            yield ab.current_stream(device)

    async def main():
        generator = streams()
        with ab.Stream() as a:
            assert await anext(generator) == a
        with ab.Stream() as b:
            assert await anext(generator) == b
        await generator.aclose()

    asyncio.run(main())
