"""What the host's waiting orders under `check`: for the task that waits, and for no other."""

import concurrent.futures
import threading

import numpy as np
import pytest

import anabranch as ab

from ..accesses import BY_THE_HOST, each_order_by_the_host, read, ready, streams, write
from ..arrays import TIMEOUT


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


def checked(function):
    """Call a function under `check`, for threads."""
    with ab.hazards("check"):
        return function()


# Waiting


def test_a_query_that_is_answered_with_no_orders_nothing(a, b, array):
    with ab.testing.Gate(a):
        write(array, a)
        event = a.record_event()
        assert not a.query()
        assert not event.query()
        with pytest.raises(ab.RaceError):
            write(array, b)


def test_a_future_that_is_not_done_orders_nothing(a, b, array):
    with ab.testing.Gate(a):
        write(array, a)
        future = a.submit(int)
        assert not future.done()
        with pytest.raises(concurrent.futures.TimeoutError):
            future.result(0)
        with pytest.raises(ab.RaceError):
            write(array, b)


def test_a_function_that_raised_orders_what_came_before_it(a, b, array):
    write(array, a)
    future = a.submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        future.result(TIMEOUT)
    write(array, b)


@each_order_by_the_host
def test_waiting_covers_nothing_that_is_enqueued_later(order, a, b, x, y):
    write(x, a)
    order(a, b)
    write(y, a)
    write(x, b)
    with pytest.raises(ab.RaceError):
        write(y, b)


@each_order_by_the_host
def test_waiting_covers_what_the_stream_had_waited_for(order, a, b, c, array):
    write(array, a)
    b.wait_stream(a)
    order(b, c)
    write(array, c)


@pytest.mark.parametrize("wait", ["stream.synchronize", "event.synchronize", "stream.query", "future.result"])
def test_waiting_for_one_stream_covers_no_other(wait, a, b, c, array):
    write(array, a)
    BY_THE_HOST[wait](b, c)
    with pytest.raises(ab.RaceError):
        write(array, c)


def test_synchronizing_one_device_covers_no_other(device, other_device):
    there, array = ab.Stream(other_device), ready(other_device)
    write(array, there)
    device.synchronize()
    with pytest.raises(ab.RaceError):
        write(array, ab.Stream(other_device))
    ab.synchronize()
    write(array, ab.Stream(other_device))


# Threads


@each_order_by_the_host
def test_what_another_thread_has_waited_for_is_not_known_here(order, in_thread, a, b, array):
    write(array, a)
    in_thread(order, a, b).result(TIMEOUT)
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_what_this_thread_has_waited_for_is_not_known_to_another(in_thread, a, b, array):
    waited = threading.Event()

    def use():
        waited.wait(TIMEOUT)
        write(array, b)

    used = in_thread(checked, use)  # it begins before that
    write(array, a)
    a.synchronize()
    waited.set()
    with pytest.raises(ab.RaceError):
        used.result(TIMEOUT)
    in_thread(checked, lambda: write(array, b)).result(TIMEOUT)


def test_an_event_hands_on_what_the_thread_that_recorded_it_has_waited_for(in_thread, a, b, c, array):
    def wait():
        a.synchronize()
        return b.record_event()

    write(array, a)
    c.wait_event(in_thread(wait).result(TIMEOUT))
    write(array, c)


def test_work_hands_on_what_the_thread_that_enqueued_it_has_waited_for(device, in_thread, a, b, array):
    def wait():
        a.synchronize()
        write(ready(device), b)

    write(array, a)
    in_thread(wait).result(TIMEOUT)
    write(array, b)


@pytest.mark.parametrize("of", ["stream", "event"])
def test_a_wait_hands_on_what_the_thread_that_enqueued_it_has_waited_for(in_thread, of, a, b, c, array):
    event = c.record_event()

    def wait():
        a.synchronize()
        if of == "stream":
            b.wait_stream(c)
        else:
            b.wait_event(event)

    write(array, a)
    in_thread(wait).result(TIMEOUT)
    write(array, b)


def test_threads_that_share_one_stream_need_no_order(in_threads, stream, array):
    in_threads(4, lambda _: checked(lambda: [write(array, stream) for _ in range(20)]))


# Functions


def test_a_function_comes_after_what_its_stream_had_to_do(a, b, array):
    write(array, a)
    a.submit(checked, lambda: write(array, b)).result(TIMEOUT)


def test_a_function_does_not_come_after_what_other_streams_have_to_do(a, b, c, array):
    write(array, b)
    future = a.submit(checked, lambda: write(array, c))
    with pytest.raises(ab.RaceError):
        future.result(TIMEOUT)


def test_a_future_tells_of_what_its_function_has_waited_for(a, b, c, array):
    write(array, b)
    a.submit(b.synchronize).result(TIMEOUT)
    write(array, c)


def test_a_stream_comes_after_what_its_function_has_waited_for(a, b, array):
    write(array, a)
    b.submit(a.synchronize)
    b.synchronize()
    write(array, b)


def test_a_future_does_not_tell_of_what_its_function_has_only_enqueued(a, b, c, array):
    a.submit(write, array, b).result(TIMEOUT)
    with pytest.raises(ab.RaceError):
        write(array, c)


def test_a_function_that_declares_what_it_accesses_races_like_a_kernel(a, b, x, y):
    a.submit(int, reads=[x], writes=[y])
    read(x, b)
    with pytest.raises(ab.RaceError) as caught:
        read(y, b)
    assert (caught.value.kind, caught.value.first.access) == ("RAW", "write")
    with pytest.raises(ab.RaceError) as caught:
        write(x, b)
    assert (caught.value.kind, caught.value.first.access) == ("WAR", "read")


@pytest.mark.parametrize("declared", ["reads", "writes"])
def test_a_function_may_declare_one_array(declared, a, b, array):
    a.submit(int, **{declared: array})
    with pytest.raises(ab.RaceError):
        write(array, b)


@pytest.mark.parametrize("declared", ["reads", "writes"])
def test_a_function_may_declare_any_iterable_of_arrays(declared, a, b, array):
    a.submit(int, **{declared: (each for each in [array])})
    with pytest.raises(ab.RaceError):
        write(array, b)


def test_what_a_function_declares_counts_though_it_was_cancelled(device):
    """When it was cancelled is for nobody to know who looks at the program alone."""
    (a, b), array = streams(device), ready(device)
    with ab.testing.Gate(a):
        future = a.submit(int, writes=[array])
        assert future.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            future.result()
        with pytest.raises(ab.RaceError):
            write(array, b)


def test_a_function_may_use_what_it_declares(a, b, array):
    write(array, a)
    b.wait_stream(a)
    result = b.submit(checked, array.numpy, reads=[array]).result(TIMEOUT)
    np.testing.assert_array_equal(result, np.ones(8))


def test_a_function_may_have_streams_do_what_it_declares(a, b, c, array):
    write(array, a)
    b.wait_stream(a)
    b.submit(checked, lambda: write(array, c), writes=[array]).result(TIMEOUT)


@pytest.mark.parametrize("declared", ["reads", "writes"])
def test_a_future_tells_of_what_its_function_declares(declared, a, b, array):
    a.submit(int, **{declared: [array]}).result(TIMEOUT)
    write(array, b)


def test_a_stream_that_is_synchronized_tells_of_what_its_functions_declare(a, b, array):
    a.submit(int, writes=[array])
    a.synchronize()
    write(array, b)
