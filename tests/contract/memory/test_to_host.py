"""`ab.to_host`: arrays on their way to the host while the event loop goes on."""

import asyncio

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready, write
from ..arrays import DTYPES, TIMEOUT, values
from ..tasks import started, turns, wait


def read(array):
    """Copy an array to the host in a loop of its own."""
    return asyncio.run(wait(ab.to_host(array)))


# What it gives


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4), (2, 0)], ids=str)
def test_awaiting_gives_an_ndarray_of_the_same_shape_and_dtype(device, shape, dtype):
    result = read(ab.array(values(shape, dtype), device=device))
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (shape, dtype)
    np.testing.assert_array_equal(result, values(shape, dtype))


VIEWS = [np.s_[1:], np.s_[::-1, ::2], np.s_[..., 0], np.s_[1, 2], np.s_[3:], np.s_[:, 1:3]]


@pytest.mark.parametrize("index", VIEWS, ids=str)
def test_a_view_gives_its_elements(device, index):
    result = read(ab.array(values((3, 4)), device=device)[index])
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, values((3, 4))[index])


@pytest.mark.parametrize("index", [np.s_[...], np.s_[::-1], np.s_[:, ::3]], ids=str)
def test_large_arrays_arrive_in_parts(device, index):
    data = values((2100, 2500), "float64")  # 42 MB, of no whole number of parts
    np.testing.assert_array_equal(read(ab.array(data, device=device)[index]), data[index])


def test_each_call_gives_a_fresh_array_that_may_be_written(device):
    array = ab.array(values(5), device=device)
    first, second = read(array), read(array)
    first[:] = 0
    np.testing.assert_array_equal(second, values(5))
    np.testing.assert_array_equal(read(array), values(5))


def test_pinned_memory_is_read_after_the_copy_that_fills_it(device, stream):
    pinned = ab.array(np.zeros(5, "float32"), device="cpu", pinned=True)
    array = ab.array(values(5), device=device)
    gate = ab.testing.Gate(stream)
    ab.copy(pinned, array, stream=stream)
    coming = ab.to_host(pinned)
    gate.open()
    np.testing.assert_array_equal(asyncio.run(wait(coming)), values(5))


def test_memory_that_is_read_only_may_be_read():
    data = values(5)
    data.flags.writeable = False
    result = read(ab.asarray(data))
    assert result.flags.writeable
    assert result.ctypes.data != data.ctypes.data
    np.testing.assert_array_equal(result, data)


async def test_it_may_be_awaited_again_and_by_several_at_once(stream):
    gate = ab.testing.Gate(stream)
    coming = ab.to_host(ab.full(5, 3, "float32", stream=stream))
    tasks = [await started(coming) for _ in range(10)]
    gate.open()
    results = await asyncio.wait_for(asyncio.gather(*tasks, coming), TIMEOUT)
    assert all(result is results[0] for result in results)
    assert await coming is results[0]


# When


async def test_the_call_returns_before_the_work_and_the_loop_goes_on(stream):
    gate = ab.testing.Gate(stream)
    task = await started(ab.to_host(ab.full(5, 3, "float32", stream=stream)))
    await turns(100)
    assert not task.done()
    gate.open()
    np.testing.assert_array_equal(await asyncio.wait_for(task, TIMEOUT), np.full(5, 3))


async def test_the_copy_begins_at_the_call_not_at_the_await(stream):
    gate = ab.testing.Gate(stream)
    first, second = (ab.to_host(ab.full(5, value, "float32", stream=stream)) for value in (1, 2))
    gate.open()
    stream.synchronize()
    np.testing.assert_array_equal(await second, np.full(5, 2))
    np.testing.assert_array_equal(await first, np.full(5, 1))


UNRELATED = {
    "a stream": ab.Stream,
    "the default stream": ab.default_stream,
    "the legacy stream": ab.legacy_stream,
    "the per-thread stream": ab.per_thread_stream,
}


@pytest.mark.parametrize("unrelated", UNRELATED.values(), ids=UNRELATED)
def test_it_waits_for_no_unrelated_stream(device, unrelated):
    array = ab.full(4, 3, "float32", stream=ab.Stream(device))
    with ab.testing.Gate(unrelated(device)):
        np.testing.assert_array_equal(read(array), np.full(4, 3))


def test_it_waits_for_no_stream_that_reads_the_array_nor_writes_beside_it(device):
    array, other = ab.array(values(8), device=device), ab.Stream(device)
    with ab.testing.Gate(other):
        ab.copy(ready(device, 4), array[:4], stream=other)
        ab.fill(array[4:], 0, stream=other)
        np.testing.assert_array_equal(read(array[:4]), values(8)[:4])


async def test_one_waits_for_no_other(device):
    held, stream = ab.Stream(device), ab.Stream(device)
    gate = ab.testing.Gate(held)
    late = await started(ab.to_host(ab.full(5, 1, "float32", stream=held)))
    np.testing.assert_array_equal(await ab.to_host(ab.full(5, 2, "float32", stream=stream)), np.full(5, 2))
    assert not late.done()
    gate.open()
    np.testing.assert_array_equal(await late, np.full(5, 1))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
async def test_it_waits_for_every_stream_that_writes_the_array(device, order):
    array, streams = ready(device, 6), [ab.Stream(device) for _ in range(3)]
    gates = [ab.testing.Gate(stream) for stream in streams]
    for k, stream in enumerate(streams):
        ab.fill(array[2 * k : 2 * k + 2], k + 1, stream=stream)
    task = await started(ab.to_host(array))
    for k in order:
        await turns()
        assert not task.done()
        gates[k].open()
    np.testing.assert_array_equal(await asyncio.wait_for(task, TIMEOUT), [1, 1, 2, 2, 3, 3])


# The elements are those of the time of the call


@pytest.mark.parametrize("mode", ["auto", "check"])
@pytest.mark.parametrize("same", [True, False], ids=["same stream", "other stream"])
def test_what_is_written_later_waits_for_the_copy(device, mode, same):
    async def main():
        a, b = ab.Stream(device), ab.Stream(device)
        gate = ab.testing.Gate(a)
        array = ready(device)
        ab.fill(array, 1, stream=a)
        coming = ab.to_host(array)
        if not same:
            b.wait_stream(a)
        ab.fill(array, 2, stream=a if same else b)
        gate.open()
        np.testing.assert_array_equal(await coming, np.full(8, 1))
        np.testing.assert_array_equal(await ab.to_host(array), np.full(8, 2))

    with ab.hazards(mode):
        asyncio.run(main())


async def test_what_is_written_beside_a_view_does_not_wait_for_its_copy(device, a, b):
    array = ab.array(values((4, 2)), device=device)
    with ab.testing.Gate(a):
        ab.fill(array[:, 0], 1, stream=a)
        coming = ab.to_host(array[:, 0])
        ab.fill(array[:, 1], 2, stream=b)
        await asyncio.wait_for(wait(b), TIMEOUT)
    np.testing.assert_array_equal(await coming, np.full(4, 1))


def test_it_is_never_a_race(device):
    async def main():
        a, b, array = ab.Stream(device), ab.Stream(device), ready(device)
        write(array, a)
        first = ab.to_host(array)
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
        assert caught.value.kind == "WAW"
        write(array, a)
        second = ab.to_host(array)
        await first
        await second
        write(array, b)

    with ab.hazards("check"):
        asyncio.run(main())


def test_awaiting_it_orders_what_the_task_does_later(device):
    async def main():
        a, b, array = ab.Stream(device), ab.Stream(device), ready(device)
        write(array, a)
        await ab.to_host(array)
        write(array, b)

    with ab.hazards("check"):
        asyncio.run(main())


@pytest.mark.thread_unsafe(reason="a trace is of all threads")
def test_once_awaited_it_costs_no_wait(device):
    async def main():
        stream, array = ab.Stream(device), ready(device)
        for value in range(5):
            ab.fill(array, value, stream=stream)
            np.testing.assert_array_equal(await ab.to_host(array), np.full(8, value))

    with ab.trace() as trace:
        asyncio.run(main())
    assert {each.kind for each in trace.operations if each.stream} <= {"fill", "alloc", "free"}


def test_with_hazards_off_it_still_comes_after_what_writes_the_array(device):
    async def main():
        stream, array = ab.Stream(device), ready(device)
        gate = ab.testing.Gate(stream)
        ab.fill(array, 3, stream=stream)
        coming = ab.to_host(array)
        gate.open()
        np.testing.assert_array_equal(await coming, np.full(8, 3))

    with ab.hazards("off"):
        asyncio.run(main())
