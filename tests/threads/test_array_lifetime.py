"""Arrays dropped on other threads, in cycles, by the garbage collector, in any order, with work pending."""

import gc
import random
import threading
from contextlib import suppress

import numpy as np
import pytest

import anabranch as ab

from ..contract.arrays import TIMEOUT, values

SIZE = 1000


class Node:
    """A Python object that may be part of a cycle."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def ready(device):
    """Make an array of zeros that is ready, so that any stream may use it."""
    return ab.array(np.zeros(SIZE, "float32"), device=device)


def allocate_over(device):
    """Allocate and write, on a stream that nothing holds, what would land on memory freed too early."""
    stream = ab.Stream(device)
    arrays = [ab.full(SIZE, -1, "float32", stream=stream) for _ in range(20)]
    stream.synchronize()
    return arrays


def by_thread(holder, in_thread):
    in_thread(holder.clear).result(TIMEOUT)


def by_thread_with_another_device_current(holder, in_thread):
    def clear():
        with ab.devices()[-1]:
            holder.clear()

    in_thread(clear).result(TIMEOUT)


def by_collector(holder, _):
    node = Node(kept=list(holder))
    node.itself = node
    holder.clear()
    del node
    gc.collect()


def by_collector_of_a_thread(holder, in_thread):
    node = Node(kept=list(holder))
    node.itself = node
    holder.clear()
    del node
    in_thread(gc.collect).result(TIMEOUT)


def by_host_function(holder, _):
    ab.Stream("cpu").submit(holder.clear).result(TIMEOUT)


def by_closing_on_a_thread(holder, in_thread):
    array = holder.pop()
    in_thread(array.close).result(TIMEOUT)


DROPS = [
    by_thread,
    by_thread_with_another_device_current,
    by_collector,
    by_collector_of_a_thread,
    by_host_function,
    by_closing_on_a_thread,
]


@pytest.mark.parametrize("drop", DROPS)
def test_an_array_that_pending_work_reads_may_be_dropped_anywhere(device, drop, in_thread):
    stream, result = ab.Stream(device), ready(device)
    with ab.testing.Gate(stream):
        holder = [ab.array(values(SIZE), device=device)]
        ab.copy(result, holder[0], stream=stream)
        drop(holder, in_thread)
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), values(SIZE))


@pytest.mark.parametrize("drop", DROPS)
def test_an_array_that_pending_work_writes_may_be_dropped_anywhere(device, drop, in_thread):
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        holder = [ready(device)]
        ab.fill(holder[0], 7, stream=stream)
        drop(holder, in_thread)
        others = allocate_over(device)
    stream.synchronize()
    for other in others:
        np.testing.assert_array_equal(other.numpy(), np.full(SIZE, -1))


def test_an_array_dropped_by_a_host_function_of_its_own_stream(device):
    stream, result = ab.Stream(device), ready(device)
    with ab.testing.Gate(stream):
        holder = [ab.full(SIZE, 3, "float32", stream=stream)]
        ab.copy(result, holder[0], stream=stream)
        dropped = stream.submit(holder.clear)
    dropped.result(TIMEOUT)
    stream.synchronize()
    np.testing.assert_array_equal(result.numpy(), np.full(SIZE, 3))


def test_an_array_outlives_the_thread_that_made_it(device, in_thread):
    array = in_thread(lambda: ab.full(SIZE, 3, "float32", device=device)).result(TIMEOUT)
    np.testing.assert_array_equal(array.numpy(), np.full(SIZE, 3))
    ab.fill(array, 4)
    np.testing.assert_array_equal(array.numpy(), np.full(SIZE, 4))


def test_an_array_and_its_stream_may_be_one_cycle(device):
    result = ready(device)
    node = Node(stream=ab.Stream(device))
    node.array, node.itself = ab.full(SIZE, 3, "float32", stream=node.stream), node
    with ab.testing.Gate(node.stream):
        ab.copy(result, node.array, stream=node.stream)
        del node
        gc.collect()
        allocate_over(device)
    np.testing.assert_array_equal(result.numpy(), np.full(SIZE, 3))


def test_a_finalizer_may_use_arrays(device):
    seen = []

    class Reader:
        def __init__(self, array):
            self.array, self.itself = array, self

        def __del__(self):
            seen.append(self.array.numpy())
            self.array.close()

    for _ in range(20):
        Reader(ab.array(values(SIZE), device=device))
    gc.collect()
    assert len(seen) == 20
    for result in seen:
        np.testing.assert_array_equal(result, values(SIZE))


def test_views_of_one_base_may_be_dropped_on_many_threads_at_once(device, in_thread):
    for _ in range(20):
        base = ab.array(values(SIZE), device=device)
        holders = [[base[k:]] for k in range(8)]
        del base
        start = threading.Barrier(len(holders))

        def clear(holder, start=start):
            start.wait(TIMEOUT)
            holder.clear()

        for cleared in [in_thread(clear, holder) for holder in holders]:
            cleared.result(TIMEOUT)
    np.testing.assert_array_equal(ab.array(values(SIZE), device=device).numpy(), values(SIZE))


def test_threads_that_allocate_copy_and_drop_at_once_spoil_nothing(device, in_thread):
    def work(seed):
        choose, stream = random.Random(seed), ab.Stream(device)
        arrays = [ab.full(SIZE, seed, "int32", stream=stream)]
        for _ in range(200):
            source = choose.choice(arrays)
            target = ab.empty(SIZE, "int32", stream=stream)
            ab.copy(target, source, stream=stream)
            arrays.append(target[::-1])
            if len(arrays) > 5:
                del arrays[choose.randrange(len(arrays))]
        return [array.numpy() for array in arrays]

    for seed, results in enumerate([in_thread(work, seed) for seed in range(8)]):
        for result in results.result(TIMEOUT):
            np.testing.assert_array_equal(result, np.full(SIZE, seed))


def test_arrays_handed_from_thread_to_thread_are_whole(device, in_thread):
    """Each thread copies on a stream of its own what the one before it made, and drops it."""

    def step(holder):
        stream = ab.Stream(device)
        event, array = holder.pop()
        stream.wait_event(event)
        result = ab.empty(SIZE, stream=stream)
        ab.copy(result, array, stream=stream)
        holder.append((stream.record_event(), result))

    first = ab.Stream(device)
    with ab.testing.Gate(first):
        array = ab.array(values(SIZE), device=device)
        result = ab.empty(SIZE, stream=first)
        ab.copy(result, array, stream=first)
        holder = [(first.record_event(), result)]
        del array, result
        for _ in range(20):
            in_thread(step, holder).result(TIMEOUT)
        allocate_over(device)
    np.testing.assert_array_equal(holder[0][1].numpy(), values(SIZE))


def test_reading_and_closing_at_once_gives_the_data_or_says_closed(device, in_thread):
    def read(array, start):
        start.wait(TIMEOUT)
        try:
            return array.numpy()
        except ab.ClosedError:
            return values(SIZE)

    def close(array, start):
        start.wait(TIMEOUT)
        array.close()

    for _ in range(50):
        array, start = ab.array(values(SIZE), device=device), threading.Barrier(4)
        reading = [in_thread(read, array, start), in_thread(read, array, start)]
        closing = [in_thread(close, array, start), in_thread(close, array, start)]
        for closed in closing:
            closed.result(TIMEOUT)
        for result in reading:
            np.testing.assert_array_equal(result.result(TIMEOUT), values(SIZE))


def test_an_array_may_be_closed_while_other_threads_use_it(device, in_threads):
    def until_closed(use):
        with suppress(ab.ClosedError):
            while True:
                use()

    for _ in range(10):
        array, other = ready(device), ready(device)
        begun = threading.Barrier(4)

        def body(thread, array=array, other=other, begun=begun):
            stream = ab.Stream(device)
            uses = [
                lambda: ab.fill(array, 5, stream=stream),
                lambda: ab.copy(other, array, stream=stream),
                lambda: array[1:],
            ]
            begun.wait(TIMEOUT)
            array.close() if thread == 3 else until_closed(uses[thread])
            stream.synchronize()

        in_threads(4, body)
        others = allocate_over(device)
        for each in others:
            np.testing.assert_array_equal(each.numpy(), np.full(SIZE, -1))
