"""`await` on streams and events."""

import asyncio
import gc
import sys
import types

import pytest

import anabranch as ab

from ..tasks import started, turns, wait

TARGET = {"stream": lambda stream: stream, "event": lambda stream: stream.record_event()}
each_target = pytest.mark.parametrize("target", TARGET.values(), ids=TARGET)


@each_target
def test_awaiting_what_has_finished_returns_none(target, stream):
    stream.submit(int).result(10)
    stream.synchronize()
    assert asyncio.run(wait(target(stream))) is None


@each_target
async def test_awaiting_returns_none_once_the_work_is_done(target, enqueue, stream):
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    task = await started(target(stream))
    await turns(100)
    assert not task.done()
    gate.open()
    assert await asyncio.wait_for(task, 10) is None
    assert stream.query()


def test_awaiting_an_event_never_recorded_returns():
    asyncio.run(wait(ab.Event()))


@each_target
async def test_awaiting_does_not_hold_the_loop(target, stream):
    gate = ab.testing.Gate(stream)
    asyncio.get_running_loop().call_soon(gate.open)
    await target(stream)


async def test_awaiting_a_stream_waits_for_the_work_enqueued_up_to_then(stream):
    first = ab.testing.Gate(stream)
    task = await started(stream)
    with ab.testing.Gate(stream):
        first.open()
        await asyncio.wait_for(task, 10)
        assert not stream.query()


@pytest.mark.parametrize("then", ["complete", "held"])
async def test_awaiting_an_event_keeps_the_record_it_found(then):
    event, first, second = ab.Event(), ab.Stream(), ab.Stream()
    gates = [ab.testing.Gate(first), ab.testing.Gate(second)]
    event.record(first)
    task = await started(event)
    event.record(second)
    if then == "complete":
        gates[1].open()
        event.synchronize()
        await turns(100)
        assert not task.done()
        gates[0].open()
    else:
        gates[0].open()
    await asyncio.wait_for(task, 10)
    gates[1].open()


@each_target
async def test_awaiting_covers_what_the_stream_waits_for(target, other_device):
    stream, held = ab.Stream(), ab.Stream(other_device)
    gate = ab.testing.Gate(held)
    stream.wait_stream(held)
    task = await started(target(stream))
    await turns(100)
    assert not task.done()
    gate.open()
    await asyncio.wait_for(task, 10)


@pytest.mark.parametrize("default", [ab.legacy_stream, ab.per_thread_stream])
async def test_a_default_stream_may_be_awaited(default):
    gate = ab.testing.Gate(default())
    task = await started(default())
    assert not task.done()
    gate.open()
    await asyncio.wait_for(task, 10)


@each_target
async def test_one_object_may_be_awaited_by_many_tasks(target, stream):
    gate = ab.testing.Gate(stream)
    awaited = target(stream)
    tasks = [await started(awaited) for _ in range(20)]
    gate.open()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 10) == [None] * 20


@pytest.mark.many_streams
@each_target
async def test_a_thousand_awaits_at_once(target):
    streams = [ab.Stream() for _ in range(1000)]
    root = ab.Stream()
    gate = ab.testing.Gate(root)
    for stream in streams:
        stream.wait_stream(root)
    asyncio.get_running_loop().call_soon(gate.open)
    assert await asyncio.gather(*(wait(target(stream)) for stream in streams)) == [None] * 1000
    assert all(stream.query() for stream in streams)


async def test_awaits_on_one_stream_end_in_its_order():
    stream, done, tasks = ab.Stream(), [], []
    gates = []
    for index in range(5):
        gates.append(ab.testing.Gate(stream))
        tasks.append(await started(stream.record_event()))
        tasks[-1].add_done_callback(lambda _, index=index: done.append(index))
    for task, gate in zip(tasks, gates, strict=True):
        gate.open()
        await asyncio.wait_for(task, 10)
    await turns(2)
    assert done == list(range(5))


@each_target
def test_streams_may_be_awaited_in_loops_of_many_threads(target, device, in_threads):
    def body(_):
        async def main():
            stream = ab.Stream(device)
            for _ in range(20):
                stream.submit(int)
                await target(stream)
                assert stream.query()

        return asyncio.run(main())

    assert in_threads(8, body) == [None] * 8


def test_a_future_may_be_awaited_through_asyncio():
    async def main():
        return await asyncio.wrap_future(ab.Stream().submit(int, "7"))

    assert asyncio.run(main()) == 7


@pytest.mark.thread_unsafe(reason="changes what is imported")
@pytest.mark.parametrize("begun", [["trio"], ["trio", "trio.lowlevel"]], ids=len)
@each_target
def test_another_thread_may_be_importing_trio(target, begun, monkeypatch):
    monkeypatch.delitem(sys.modules, "trio.lowlevel", raising=False)
    for name in begun:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))

    async def main():
        stream = ab.Stream()
        gate = ab.testing.Gate(stream)
        task = await started(target(stream))
        gate.open()
        await asyncio.wait_for(task, 10)
        return await stream.submit(int, 3)

    assert asyncio.run(main()) == 3


# -- cancelling --


@each_target
async def test_cancelling_an_await_drops_nothing_that_is_in_flight(target):
    stream, done = ab.Stream(), []
    gate = ab.testing.Gate(stream)
    stream.submit(done.append, 1)
    task = await started(target(stream))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not stream.query()
    gate.open()
    await stream
    assert done == [1]


@each_target
async def test_an_await_may_run_out_of_time_and_be_repeated(target, stream):
    with ab.testing.Gate(stream):
        awaited = target(stream)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(awaited), 0.01)
    assert await asyncio.wait_for(wait(awaited), 10) is None


@each_target
async def test_cancelling_while_the_work_completes_is_no_error(target):
    for _ in range(100):
        stream = ab.Stream()
        gate = ab.testing.Gate(stream)
        task = await started(target(stream))
        gate.open()
        task.cancel()
        await asyncio.wait([task], timeout=10)
        assert task.cancelled() or task.result() is None


@pytest.mark.parametrize("end", ["closed", "dropped"])
@each_target
async def test_an_await_outlives_its_object(target, end):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    awaited = target(stream)
    task = await started(awaited)
    if end == "closed":
        awaited.close()
    del awaited, stream
    gc.collect()
    gate.open()
    assert await asyncio.wait_for(task, 10) is None


# -- the loop ends first --


@each_target
def test_a_loop_may_end_before_the_work(target, stream):
    gate = ab.testing.Gate(stream)

    async def main():
        await started(target(stream))  # cancelled by `run`

    asyncio.run(main())
    work = stream.submit(int)
    gate.open()
    assert work.result(10) == 0
    stream.synchronize()
    assert asyncio.run(wait(stream)) is None


@pytest.mark.parametrize("awaited", ["stream", "stream.record_event()"])
def test_a_loop_that_was_closed_before_completion_prints_nothing(awaited, device, run_python):
    script = f"""
        import asyncio
        import anabranch as ab

        stream = ab.Stream({device.alias!r})

        async def wait():
            await {awaited}

        async def main():
            asyncio.create_task(wait())
            await asyncio.sleep(0)

        for _ in range(10):
            gate = ab.testing.Gate(stream)
            asyncio.run(main())
            gate.open()
            stream.synchronize()

        async def suspend(coroutine):
            coroutine.send(None)

        gate = ab.testing.Gate(stream)
        suspended = wait()
        asyncio.run(suspend(suspended))
        gate.open()
        stream.synchronize()
        """
    assert run_python(script) == ""


@each_target
def test_a_host_function_may_not_await_its_own_stream(target, stream):
    with pytest.raises(ab.Error, match="a host function cannot wait for itself"):
        stream.submit(lambda: asyncio.run(wait(target(stream)))).result(10)
