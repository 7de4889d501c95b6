"""How `ab.to_host` ends: what is let go, errors, cancelled awaits, other threads."""

import asyncio
import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..arrays import TIMEOUT, comes, values
from ..tasks import started, wait

FAILURES = (ab.KernelError, ab.DriverError)


def read(array):
    """Copy an array to the host in a loop of its own."""
    return asyncio.run(wait(ab.to_host(array)))


# What is let go


@pytest.mark.parametrize("end", ["close", "drop"])
async def test_the_array_may_end_at_once(device, end):
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        array = ab.full(1000, 3, "float32", stream=stream)
        coming = ab.to_host(array)
        if end == "close":
            array.close()
        else:
            del array
        others = [ab.full(1000, -1, "float32", stream=stream) for _ in range(10)]
    np.testing.assert_array_equal(await coming, np.full(1000, 3))
    assert all((other.numpy() == -1).all() for other in others)


def test_what_it_gives_may_be_dropped_before_it_arrives(stream):
    with ab.testing.Gate(stream):
        array = ab.full(1000, 3, "float32", stream=stream)
        for _ in range(50):
            ab.to_host(array)
        gc.collect()
    np.testing.assert_array_equal(read(array), np.full(1000, 3))


class Owner:
    """Has memory that others look at."""

    def __init__(self):
        self.data = values(100)
        self.__array_interface__ = self.data.__array_interface__


@pytest.mark.parametrize("how", ["awaited", "cancelled", "dropped"])
def test_memory_of_others_goes_back_once_the_copy_is_done(how):
    gone = threading.Event()

    async def main():
        owner = Owner()
        weakref.finalize(owner, gone.set)
        array = ab.asarray(owner)
        del owner
        stream = ab.Stream("cpu")
        gate = ab.testing.Gate(stream)
        ab.fill(array, 3, stream=stream)
        task = await started(ab.to_host(array))
        array.close()
        if how != "awaited":
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if how == "dropped":
            del task
        gc.collect()
        assert not gone.is_set()
        gate.open()
        if how == "awaited":
            await task

    asyncio.run(main())
    assert comes(gone)


@pytest.mark.many_streams
@pytest.mark.parametrize("one", [True, False], ids=["one array", "many"])
async def test_a_thousand_at_once(one, stream):
    with ab.testing.Gate(stream):
        arrays = [ab.full(10, value, "float32", stream=stream) for value in range(1 if one else 1000)]
        coming = [ab.to_host(array) for array in arrays * (1000 if one else 1)]
        cancelled = [await started(each) for each in coming[::2]]
        for task in cancelled:
            task.cancel()
    for value, result in enumerate(await asyncio.gather(*coming)):
        assert (result == (0 if one else value)).all()
    assert all(task.cancelled() for task in cancelled)
    ab.fill(arrays[0], -1, stream=stream)
    assert (await ab.to_host(arrays[0]) == -1).all()


@pytest.mark.memory
def test_again_and_again_it_takes_no_memory(device):
    async def main():
        array = ab.full(100_000, 3, "float32")
        for _ in range(200):
            await ab.to_host(array)

    ab.synchronize()
    asyncio.run(main())
    ab.synchronize()
    free = ab.Device("cpu").free_memory
    for _ in range(5):
        asyncio.run(main())
    ab.synchronize()
    assert ab.Device("cpu").free_memory >= free - (4 << 20)


# Errors


def test_what_is_no_array_is_refused(device):
    with pytest.raises(TypeError, match="array is an Array, not ndarray"):
        ab.to_host(values(4))
    array = ab.zeros(4)
    array.close()
    with pytest.raises(ab.ClosedError):
        ab.to_host(array)


@pytest.mark.usefixtures("failures_forgotten")
async def test_each_task_that_awaits_what_failed_gets_an_error_of_its_own(device):
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        fine = ab.to_host(ab.full(4, 3, "float32", stream=stream))
        ab.testing.fail(stream)
        lost = ab.to_host(ab.full(4, 3, "float32", stream=stream))
        tasks = [await started(lost) for _ in range(3)]
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(error, FAILURES) for error in errors)
    assert len({id(error) for error in errors}) == 3
    with pytest.raises(FAILURES):
        await lost
    assert (await fine == 3).all()


@pytest.mark.usefixtures("failures_forgotten")
def test_an_error_that_nobody_awaits_is_not_told(device, run_python):
    script = f"""
        import asyncio
        import anabranch as ab

        async def main():
            with ab.Stream({device.alias!r}) as stream:
                ab.testing.fail(stream)
                ab.to_host(ab.full(4, 3))
                task = asyncio.ensure_future(ab.to_host(ab.full(4, 3)))
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait([task])

        asyncio.run(main())
        """
    assert run_python(script) == ""


async def test_it_may_run_out_of_time_and_be_awaited_again(stream):
    with ab.testing.Gate(stream):
        coming = ab.to_host(ab.full(4, 3, "float32", stream=stream))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await coming
    async with asyncio.timeout(TIMEOUT):
        assert (await coming == 3).all()


def test_a_process_may_end_before_the_copy(device, run_python):
    script = f"""
        import asyncio
        import anabranch as ab

        async def main():
            with ab.Stream({device.alias!r}) as stream:
                gate = ab.testing.Gate(stream)
                tasks = [asyncio.ensure_future(ab.to_host(ab.full(4, 3))) for _ in range(10)]
                await asyncio.sleep(0)
            return gate, tasks

        gate, tasks = asyncio.run(main())
        kept = [ab.to_host(ab.full(4, 3)) for _ in range(10)]
        """
    assert run_python(script) == ""


# Elsewhere


def test_a_function_of_a_stream_may_read_what_the_stream_wrote(stream):
    array = ab.full(5, 3, "float32", stream=stream)
    work = stream.submit(read, array)
    ab.fill(array, 1, stream=stream)
    np.testing.assert_array_equal(work.result(TIMEOUT), np.full(5, 3))


def test_it_may_be_called_in_one_thread_and_awaited_in_others(in_threads, stream):
    with ab.testing.Gate(stream):
        coming = [ab.to_host(ab.full(100, value, "float32", stream=stream)) for value in range(8)]

    def body(thread):
        async def main():
            return [(await each)[0] for each in coming[thread:] + coming[:thread]]

        return asyncio.run(main())

    numbers = list(range(8))
    assert in_threads(8, body) == [numbers[thread:] + numbers[:thread] for thread in range(8)]


def test_many_threads_may_copy_one_array(device, in_threads):
    array = ab.array(values(1000), device=device)

    def body(_):
        async def main():
            return [(await ab.to_host(array)).sum() for _ in range(20)]

        return set(asyncio.run(main()))

    assert in_threads(8, body) == [{values(1000).sum()}] * 8
