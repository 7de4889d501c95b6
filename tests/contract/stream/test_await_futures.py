"""`await` on futures of host functions: what the function raised, and who cancels whom."""

import asyncio
import concurrent.futures

import pytest

import anabranch as ab

from ..arrays import TIMEOUT
from ..tasks import started, wait


def run_in_trio(function, *args):
    return pytest.importorskip("trio", reason="trio is not installed").run(function, *args)


def run_in_asyncio(function, *args):
    return asyncio.run(asyncio.wait_for(function(*args), TIMEOUT))


def stop(error):
    raise error


@pytest.mark.parametrize("run", [run_in_asyncio, run_in_trio])
@pytest.mark.parametrize("done", [False, True])
def test_a_stop_iteration_is_the_cause_of_an_error(run, done):
    stream, error = ab.Stream(), StopIteration(3)
    future = stream.submit(stop, error)
    if done:
        stream.synchronize()
    with pytest.raises(RuntimeError) as caught:
        run(wait, future)
    assert caught.value.__cause__ is error
    with pytest.raises(StopIteration):
        future.result(TIMEOUT)


@pytest.mark.parametrize("run", [run_in_asyncio, run_in_trio])
def test_other_errors_arrive_as_they_are(run):
    error = LookupError()
    with pytest.raises(LookupError) as caught:
        run(wait, ab.Stream().submit(stop, error))
    assert caught.value is error


async def test_cancelling_one_await_cancels_the_function_for_all():
    stream, done = ab.Stream(), []
    gate = ab.testing.Gate(stream)
    future = stream.submit(done.append, 1)
    tasks = [await started(future) for _ in range(3)]
    tasks[1].cancel()
    await asyncio.wait(tasks, timeout=TIMEOUT)
    assert [task.cancelled() for task in tasks] == [True] * 3
    assert future.cancelled()
    gate.open()
    await stream
    assert done == []


def test_a_shield_keeps_the_function():
    async def main():
        stream = ab.Stream()
        gate = ab.testing.Gate(stream)
        future = stream.submit(int, 3)
        task, other = await started(asyncio.shield(future)), await started(future)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open()
        return await other

    assert asyncio.run(main()) == 3


@pytest.mark.parametrize("first", [False, True])
async def test_a_cancelled_function_cancels_those_who_await_it(first, stream):
    with ab.testing.Gate(stream):
        future = stream.submit(int)
        if first:
            assert future.cancel()
        task = await started(future)
        if not first:
            assert future.cancel()
        await asyncio.wait([task], timeout=TIMEOUT)
        assert task.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(TIMEOUT)
