import contextlib
import gc
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

from ..arrays import values

BLOCK = 64 << 20  # bytes; large beside everything else that a test holds


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_of_earlier_tests():
    gc.collect()
    with contextlib.suppress(ab.KernelError):  # of a test of failures that ran before in this process
        ab.synchronize()


def block(device, **where):
    return ab.empty(BLOCK, "uint8", device=device, **where)


def allocate_over(device, count=20, size=1000):
    """Allocate and write, on a stream that nothing holds, what would land on memory freed too early."""
    stream = ab.Stream(device)
    arrays = [ab.full(size, -1, "float32", stream=stream) for _ in range(count)]
    stream.synchronize()
    return arrays


# Accounting


@pytest.mark.memory
def test_a_device_tells_its_memory(device):
    assert 0 < device.free_memory <= device.total_memory


@pytest.mark.memory
def test_an_array_takes_memory_of_its_device(device):
    free = device.free_memory
    array = block(device)
    device.synchronize()
    assert device.free_memory <= free - BLOCK // 2
    assert array.nbytes == BLOCK


@pytest.mark.memory
def test_an_array_takes_no_memory_of_another_device(device, other_device):
    other_device.synchronize()
    free = other_device.free_memory
    array = block(device)
    device.synchronize()
    if other_device.kind == "cpu":
        assert other_device.free_memory == free
    assert array.device is device


@pytest.mark.memory
@pytest.mark.parametrize("end", ["close", "drop"])
def test_memory_given_back_is_free_after_a_synchronization(device, end):
    array = block(device)
    device.synchronize()
    free = device.free_memory
    if end == "close":
        array.close()
    else:
        del array
    device.synchronize()
    assert device.free_memory >= free + BLOCK // 2


@pytest.mark.memory
def test_memory_is_not_free_while_work_may_use_it(device):
    stream = ab.Stream(device)
    array = block(device, stream=stream)
    stream.synchronize()
    free = device.free_memory
    with ab.testing.Gate(stream):
        ab.fill(array, 1, stream=stream)
        del array
        assert device.free_memory < free + BLOCK // 2
    stream.synchronize()
    device.synchronize()
    assert device.free_memory >= free + BLOCK // 2


@pytest.mark.memory
def test_a_view_keeps_all_the_memory_of_its_base(device):
    array = block(device)
    view = array[:1]
    device.synchronize()
    free = device.free_memory
    array.close()
    device.synchronize()
    assert device.free_memory < free + BLOCK // 2
    view.close()
    device.synchronize()
    assert device.free_memory >= free + BLOCK // 2


@pytest.mark.memory
def test_allocating_and_freeing_ten_thousand_times_takes_no_memory(device, stream):
    kept = ab.empty(1 << 14, stream=stream)
    device.synchronize()
    free = device.free_memory
    for _ in range(10_000):
        ab.empty(1 << 14, stream=stream)
    device.synchronize()
    assert device.free_memory >= free - 8 * kept.nbytes


def resident():
    pages = Path("/proc/self/statm")
    if not pages.exists():
        pytest.skip("needs /proc to tell the memory of the process")
    return int(pages.read_text().split()[1]) * 4096


@pytest.mark.memory
def test_ten_thousand_arrays_views_and_operations_leave_nothing_behind(device):
    stream = ab.Stream(device)

    def cycles(count):
        for number in range(count):
            array = ab.zeros(1000, stream=stream)
            ab.fill(array[10:20], 1, stream=stream)
            ab.copy(array[:10], array[10:20], stream=stream)
            if number % 100 == 0:
                stream.synchronize()  # so that what is on its way does not add up
        del array
        stream.synchronize()
        gc.collect()

    cycles(1000)
    objects, memory = sys.getallocatedblocks(), resident()
    cycles(10_000)
    assert sys.getallocatedblocks() - objects < 1000
    assert resident() - memory < 8 << 20


# Exhaustion


def test_more_than_all_memory_is_a_memory_error(device):
    with pytest.raises(MemoryError):
        ab.empty(2 * device.total_memory, "uint8", device=device)
    np.testing.assert_array_equal(ab.array(values(5), device=device).numpy(), values(5))


@pytest.mark.parametrize("create", [ab.zeros, ab.ones])
def test_every_creation_says_that_memory_is_exhausted(device, create):
    with pytest.raises(MemoryError):
        create(2 * device.total_memory, "uint8", device=device)


def test_memory_errors_name_the_size_and_the_device(device):
    size = 2 * device.total_memory
    with pytest.raises(MemoryError, match=device.alias) as error:
        ab.empty(size, "uint8", device=device)
    assert any(character.isdigit() for character in str(error.value).replace(device.alias, ""))


@pytest.mark.memory
def test_a_device_whose_memory_was_exhausted_works_on(device):
    share = device.total_memory // 4
    arrays = []
    with pytest.raises(MemoryError):
        arrays.extend(ab.empty(share, "uint8", device=device) for _ in range(8))
    arrays.clear()
    device.synchronize()
    array = block(device)
    ab.fill(array[:10], 3)
    np.testing.assert_array_equal(array[:10].numpy(), np.full(10, 3))


# Frees follow every use


def test_memory_dropped_with_work_pending_is_used_rightly(device, stream):
    result = ab.array(np.zeros(1000, "float32"), device=device)
    with ab.testing.Gate(stream):
        ab.copy(result, ab.full(1000, 3, "float32", stream=stream), stream=stream)
        gc.collect()
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), np.full(1000, 3))


def test_a_chain_of_dropped_arrays_is_used_rightly(device, stream):
    with ab.testing.Gate(stream):
        array = ab.full(1000, 3, "float32", stream=stream)
        for _ in range(50):
            following = ab.empty(1000, stream=stream)
            ab.copy(following, array, stream=stream)
            array = following
        allocate_over(device)
    np.testing.assert_array_equal(array.numpy(), np.full(1000, 3))


def test_a_dropped_array_that_is_written_later_spoils_no_other(device):
    stream = ab.Stream(device)
    array = ab.array(np.zeros(1000, "float32"), device=device)
    with ab.testing.Gate(stream):
        ab.fill(array, 7, stream=stream)
        del array
        others = allocate_over(device)
    stream.synchronize()
    for other in others:
        np.testing.assert_array_equal(other.numpy(), np.full(1000, -1))


@pytest.mark.parametrize("user", ["first", "second", "third"])
def test_a_free_follows_every_stream_that_used_the_memory(device, user):
    home = ab.Stream(device)
    array = ab.array(values(1000), stream=home)
    streams = {name: ab.Stream(device) for name in ["first", "second", "third"]}
    results = {name: ab.array(np.zeros(1000, "float32"), device=device) for name in streams}
    with ab.testing.Gate(streams[user]):
        for name, stream in streams.items():
            ab.copy(results[name], array, stream=stream)
        del array
        allocate_over(device)
    for result in results.values():
        np.testing.assert_array_equal(result.numpy(), values(1000))


def test_a_free_follows_a_stream_of_another_device(device, other_device):
    array = ab.array(values(1000), device=device, pinned=device.kind == "cpu")
    result = ab.array(np.zeros(1000, "float32"), device=other_device, pinned=other_device.kind == "cpu")
    stream = ab.Stream(other_device)
    with ab.testing.Gate(stream):
        ab.copy(result, array, stream=stream)
        del array
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), values(1000))


def test_a_free_follows_the_work_with_a_view(device, stream):
    result = ab.array(np.zeros(10, "float32"), device=device)
    with ab.testing.Gate(stream):
        ab.copy(result, ab.array(values(1000), device=device)[10:20], stream=stream)
        gc.collect()
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), values(1000)[10:20])


@pytest.mark.parametrize("order", list(itertools.permutations(["stream", "source", "view", "event"])), ids="-".join)
def test_streams_events_arrays_and_views_may_go_in_any_order(device, order):
    result = ab.array(np.zeros(100, "float32"), device=device)
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        source = ab.full(1000, 3, "float32", stream=stream)
        held = {"stream": stream, "source": source, "view": source[:100], "event": stream.record_event()}
        ab.copy(result, held["view"], stream=stream)
        del stream, source
        for name in order:
            held.pop(name)
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), np.full(100, 3))


def test_an_array_outlives_its_closed_stream(stream):
    array = ab.full(1000, 3, "float32", stream=stream)
    stream.close()
    np.testing.assert_array_equal(array.numpy(), np.full(1000, 3))
    ab.fill(array, 4)
    np.testing.assert_array_equal(array.numpy(), np.full(1000, 4))
