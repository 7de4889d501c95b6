"""`await` in tasks of trio, and through anyio."""

import asyncio
import gc

import numpy as np
import pytest

import anabranch as ab

from ..arrays import TIMEOUT
from ..tasks import wait

trio = pytest.importorskip("trio", reason="trio is not installed")
anyio = pytest.importorskip("anyio", reason="anyio is not installed")

TARGET = {
    "stream": lambda stream: stream,
    "event": lambda stream: stream.record_event(),
    "array": lambda stream: ab.to_host(ab.full(4, 3, stream=stream)),
    "future": lambda stream: stream.submit(int, 3),
}
each_target = pytest.mark.parametrize("target", TARGET.values(), ids=TARGET)


async def turns(count=100):
    for _ in range(count):
        await trio.lowlevel.checkpoint()


@each_target
def test_awaiting_what_has_finished_returns(target, stream):
    awaited = target(stream)
    stream.synchronize()
    trio.run(wait, awaited)


@each_target
def test_awaiting_waits_and_does_not_hold_the_loop(target):
    async def main():
        stream, done = ab.Stream(), []
        gate = ab.testing.Gate(stream)
        awaited = target(stream)

        async def body():
            done.append(await awaited)

        with trio.fail_after(TIMEOUT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(body)
                nursery.start_soon(body)
                await turns()
                assert done == []
                gate.open()
        assert len(done) == 2
        stream.synchronize()

    trio.run(main)


def test_an_array_and_the_result_of_a_function_arrive():
    async def main():
        stream = ab.Stream()
        np.testing.assert_array_equal(await ab.to_host(ab.full(4, 3, stream=stream)), np.full(4, 3))
        assert await stream.submit(int, "7") == 7
        with pytest.raises(ValueError, match="no number"):
            await stream.submit(int, "no number")

    trio.run(main)


@pytest.mark.many_streams
def test_a_thousand_awaits_at_once(device):
    async def main():
        root = ab.Stream()
        gate = ab.testing.Gate(root)
        streams = [ab.Stream() for _ in range(1000)]
        for stream in streams:
            stream.wait_stream(root)
        with trio.fail_after(TIMEOUT):
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(wait, stream)
                await turns(3)
                gate.open()
        assert all(stream.query() for stream in streams)

    trio.run(main)


@each_target
def test_cancelling_leaves_the_work_alone(target):
    async def main():
        stream, done = ab.Stream(), []
        gate = ab.testing.Gate(stream)
        stream.submit(done.append, 1)
        awaited = target(stream)
        with trio.move_on_after(0) as scope:
            await awaited
        assert scope.cancelled_caught
        assert done == []
        gate.open()
        with trio.fail_after(TIMEOUT):
            await awaited
        assert done == [1]

    trio.run(main)


def test_awaiting_is_a_checkpoint(device):
    async def main():
        stream = ab.Stream()
        stream.synchronize()
        with trio.move_on_after(0) as scope:
            await stream
        assert scope.cancelled_caught

    trio.run(main)


@pytest.mark.usefixtures("failures_forgotten")
@pytest.mark.parametrize("name", ["stream", "event", "array"])
def test_errors_arrive_in_the_task_that_awaits(name):
    async def main():
        stream = ab.Stream()
        with ab.testing.Gate(stream):
            ab.testing.fail(stream)
            awaited = TARGET[name](stream)
            with trio.move_on_after(0):
                await awaited
        with pytest.raises((ab.KernelError, ab.DriverError)):
            await awaited

    trio.run(main)
    gc.collect()


def test_a_run_may_end_before_the_work(device, run_python):
    script = f"""
        import trio.testing
        import anabranch as ab

        async def wait(awaitable):
            await awaitable

        async def main(stream):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait, stream)
                nursery.start_soon(wait, ab.to_host(ab.zeros(4, stream=stream)))
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()

        stream = ab.Stream({device.alias!r})
        for _ in range(3):
            gate = ab.testing.Gate(stream)
            trio.run(main, stream)
            gate.open()
            stream.synchronize()
        """
    assert run_python(script) == ""


def test_tasks_never_see_each_others_stream(device, other_device, first_device):
    async def body(stream):
        with stream:
            for _ in range(3):
                await turns(1)
                assert ab.current_stream(stream.device) == stream
                await stream
            now = await trio.to_thread.run_sync(lambda: (ab.current_device(), ab.current_stream(stream.device)))
            assert now == (first_device, ab.default_stream(stream.device))

    async def main():
        async with trio.open_nursery() as nursery:
            for index in range(10):
                nursery.start_soon(body, ab.Stream((device, other_device)[index % 2]))
        with ab.Stream() as stream:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(inherit, stream)

    async def inherit(stream):
        assert ab.current_stream(device) == stream

    trio.run(main)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_through_anyio_it_is_the_same_on_either(device, backend):
    async def body(results):
        with ab.Stream() as stream:
            x = ab.full(4, len(results), "float32")
            await stream
            assert ab.current_stream(device) == stream
            results.append((await ab.to_host(x)).sum())

    async def main():
        results = []
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(body, results)
        held = ab.Stream()
        with ab.testing.Gate(held):
            with anyio.move_on_after(0.01) as scope:
                await held
            assert scope.cancelled_caught
        await held
        return results

    assert len(anyio.run(main, backend=backend)) == 10


def test_loops_of_both_kinds_may_wait_for_one_stream(in_thread, stream):
    gate = ab.testing.Gate(stream)
    waiting = [
        in_thread(trio.run, wait, stream),
        in_thread(asyncio.run, wait(stream)),
        in_thread(trio.run, wait, stream),
    ]
    gate.open()
    assert [future.result(TIMEOUT) for future in waiting] == [None] * 3
