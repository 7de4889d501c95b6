"""What a host function enqueues keeps its order, also where it comes after the function, in the stream of that."""

import asyncio

import pytest

import anabranch as ab

from ..arrays import TIMEOUT

OWN = "cannot wait for itself"


def test_what_a_function_enqueues_runs_in_its_order(device, a, b):
    array = ab.zeros(4, device=device)
    ab.current_stream(device).synchronize()

    def enqueue():
        ab.fill(array, 7, stream=a)
        ab.fill(array, 1, stream=b)

    a.submit(enqueue).result(TIMEOUT)
    assert array.tolist() == [1] * 4


def test_so_does_what_goes_on_in_a_third_stream(device, a, b, stream):
    array = ab.zeros(4, device=device)
    ab.current_stream(device).synchronize()

    def enqueue():
        ab.fill(array, 7, stream=a)
        stream.wait_stream(a)
        ab.fill(array, 8, stream=stream)
        ab.fill(array, 1, stream=b)

    a.submit(enqueue).result(TIMEOUT)
    assert array.tolist() == [1] * 4


@pytest.mark.numba
def test_a_result_may_be_computed_elsewhere(device, a):
    def make():
        with a:
            array = ab.full(4, 7, device=device)
        return array + 1

    assert a.submit(make).result(TIMEOUT).tolist() == [8] * 4


@pytest.mark.parametrize("method", ["result", "exception"])
def test_a_later_function_of_its_stream_cannot_be_waited_for(a, b, method):
    def inner():
        return b.submit(len, "ab").result(TIMEOUT) + getattr(a.submit(len, "ab"), method)()

    with pytest.raises(ab.Error, match=OWN):
        a.submit(inner).result(TIMEOUT)
    assert a.submit(len, "abc").result(TIMEOUT) == 3


def test_check_finds_that_nothing_orders_it(device, a, b):
    array = ab.zeros(4, device=device)
    ab.synchronize(device)

    def race():
        with ab.hazards("check"):
            ab.fill(array, 7, stream=a)
            ab.fill(array, 1, stream=b)

    with pytest.raises(ab.RaceError) as caught:
        a.submit(race).result(TIMEOUT)
    assert (caught.value.first.stream, caught.value.second.stream) == (a, b)

    def ordered():
        with ab.hazards("check"):
            ab.fill(array, 7, stream=a)
            b.wait_stream(a)
            ab.fill(array, 1, stream=b)

    a.submit(ordered).result(TIMEOUT)
    assert array.tolist() == [1] * 4


@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize(
    "read",
    [
        lambda array: array.numpy(),
        lambda array: array[1].item(),
        lambda array: asyncio.run(awaited(ab.to_host(array))),
    ],
    ids=["numpy", "item", "to_host"],
)
def test_a_function_does_not_read_what_comes_after_it(device, a, mode, read):
    array = ab.zeros(4, device=device)
    ab.current_stream(device).synchronize()

    def early():
        with ab.hazards(mode):
            ab.fill(array, 7, stream=a)
            return read(array)

    with pytest.raises(ab.Error, match=OWN):
        a.submit(early).result(TIMEOUT)
    a.synchronize()
    assert array.tolist() == [7] * 4


async def awaited(awaitable):
    return await awaitable


@pytest.mark.numba
def test_a_function_reads_what_it_has_enqueued_elsewhere(device, a, b):
    def work():
        with b:
            return (ab.full(4, 3, device=device) * 2).tolist()

    assert a.submit(work).result(TIMEOUT) == [6] * 4


def test_what_others_enqueue_after_a_function_is_not_its_business(device, a):
    array = ab.zeros(4, device=device)
    gate = ab.testing.Gate(a)
    with gate:
        ab.fill(array, 3, stream=a)
        read = a.submit(array.numpy)
        ab.fill(array, 4, stream=a)
    assert read.result(TIMEOUT).tolist() == [3] * 4
    assert array.tolist() == [4] * 4


@pytest.mark.parametrize("wait", ["stream", "event", "array", "await"])
def test_a_wait_for_what_waits_for_the_function_is_refused(device, a, b, wait):
    array = ab.zeros(4, device=device)

    def dead():
        ab.fill(array, 7, stream=a)
        ab.fill(array, 8, stream=b)
        if wait == "stream":
            b.synchronize()
        elif wait == "event":
            b.record_event().synchronize()
        elif wait == "await":
            asyncio.run(awaited(b))
        else:
            array.numpy()

    with pytest.raises(ab.Error, match=OWN):
        a.submit(dead).result(TIMEOUT)
    assert array.tolist() == [8] * 4
