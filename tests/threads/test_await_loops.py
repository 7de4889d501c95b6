"""Event loops of several kinds, in several threads and one after the other."""

import asyncio
import contextlib
import importlib.util
import threading

import pytest

import anabranch as ab
from anabranch._stream import awaitable

TIMEOUT = 20.0


def new_uvloop():
    import uvloop

    return uvloop.new_event_loop()


LACKS_UVLOOP = importlib.util.find_spec("uvloop") is None
UVLOOP = pytest.param(new_uvloop, id="uvloop", marks=pytest.mark.skipif(LACKS_UVLOOP, reason="uvloop is not installed"))
each_loop = pytest.mark.parametrize("new_loop", [pytest.param(asyncio.new_event_loop, id="asyncio"), UVLOOP])


async def wait(awaitable):
    return await awaitable


def run(new_loop, coroutine):
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(coroutine)


@each_loop
def test_streams_events_arrays_and_functions_may_be_awaited(device, new_loop):
    async def main():
        stream = ab.Stream(device)
        gate = ab.testing.Gate(stream)
        asyncio.get_running_loop().call_soon(gate.open)
        coming = ab.to_host(ab.full(4, 3, "float32", stream=stream))
        await asyncio.gather(wait(stream), wait(stream.record_event()), coming)
        assert (await coming == 3).all()
        assert await stream.submit(int, "7") == 7

    run(new_loop, main())


@each_loop
@pytest.mark.parametrize("debug", [False, True])
def test_many_tasks_may_await_one_stream(device, new_loop, debug):
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_debug(debug)
        stream = ab.Stream(device)
        gate = ab.testing.Gate(stream)
        tasks = [asyncio.create_task(wait(stream)) for _ in range(500)]
        await asyncio.sleep(0)
        gate.open()
        assert await asyncio.wait_for(asyncio.gather(*tasks), TIMEOUT) == [None] * 500

    run(new_loop, main())


def test_each_loop_is_called_once_for_all_its_tasks():
    called = []

    class Suspended:
        def __init__(self, loop):
            self.loop = loop

        def call_soon(self, function, argument):
            called.append((self.loop, [each.number for each in argument]))
            if self.loop == "closed":
                raise RuntimeError("the loop is closed")

    arrived = [Suspended(loop) for loop in ("a", "closed", "b", "a", "closed", "b", "a")]
    for number, suspended in enumerate(arrived):
        suspended.number = number
    awaitable.resume(arrived)
    assert called == [("a", [0, 3, 6]), ("closed", [1, 4]), ("b", [2, 5])]


@each_loop
def test_one_stream_may_be_awaited_in_the_loops_of_many_threads(device, in_threads, new_loop):
    stream = ab.Stream(device)
    gate = ab.testing.Gate(stream)
    started = threading.Barrier(9, timeout=TIMEOUT)

    def body(thread):
        async def main():
            tasks = [asyncio.create_task(wait(stream)) for _ in range(20)]
            await asyncio.sleep(0)
            started.wait()
            return await asyncio.wait_for(asyncio.gather(*tasks), TIMEOUT)

        if thread == 8:
            started.wait()
            return gate.open()
        return run(new_loop, main())

    assert in_threads(9, body)[:8] == [[None] * 20] * 8


@each_loop
def test_loops_may_come_and_go_while_work_is_held(device, new_loop):
    stream = ab.Stream(device)
    gate = ab.testing.Gate(stream)

    async def give_up():
        task = asyncio.create_task(wait(stream))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    for _ in range(20):
        run(new_loop, give_up())
    gate.open()
    assert run(new_loop, wait(stream)) is None


@each_loop
def test_a_loop_that_rests_goes_on_where_it_was(device, new_loop):
    stream, loop = ab.Stream(device), new_loop()
    gate = ab.testing.Gate(stream)
    task = loop.create_task(wait(stream))
    loop.run_until_complete(asyncio.sleep(0))
    gate.open()
    stream.synchronize()
    assert not task.done()
    loop.run_until_complete(asyncio.wait_for(task, TIMEOUT))
    loop.close()


@each_loop
def test_some_of_several_loops_may_be_closed_when_the_work_is_done(device, new_loop):
    stream, loops = ab.Stream(device), [new_loop() for _ in range(4)]
    gate = ab.testing.Gate(stream)
    tasks = [loop.create_task(wait(stream)) for loop in loops]
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))
    for loop, task in list(zip(loops, tasks, strict=True))[::2]:
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        loop.close()
    gate.open()
    for loop, task in list(zip(loops, tasks, strict=True))[1::2]:
        assert loop.run_until_complete(asyncio.wait_for(task, TIMEOUT)) is None
        loop.close()
    stream.synchronize()


async def test_work_of_one_thread_wakes_a_task_of_another(device, in_thread):
    streams = [ab.Stream(device) for _ in range(50)]
    gates = [ab.testing.Gate(stream) for stream in streams]
    for stream, gate in zip(streams, gates, strict=True):
        opening = in_thread(gate.open)
        await asyncio.wait_for(wait(stream), TIMEOUT)
        opening.result(TIMEOUT)


@pytest.mark.usefixtures("failures_forgotten")
def test_one_failure_reaches_the_tasks_of_every_loop(device, in_threads):
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        ab.testing.fail(stream)
        event = stream.record_event()

    def body(thread):
        async def main():
            with pytest.raises((ab.KernelError, ab.DriverError)):
                await (event if thread % 2 else stream)

        asyncio.run(main())

    in_threads(8, body)
