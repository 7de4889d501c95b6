"""Failures of streams, as arrays see them. What streams and events see of them is in the tests of streams."""

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..arrays import TIMEOUT, comes, held, values

pytestmark = pytest.mark.usefixtures("failures_forgotten")
FAILURES = (ab.KernelError, ab.DriverError)


@contextlib.contextmanager
def failure(stream):
    """What the body enqueues in `stream` comes after an operation that fails, once the body is over."""
    with ab.testing.Gate(stream):
        ab.testing.fail(stream)
        yield


@pytest.fixture
def lost(device):
    """An array whose last write was never run, because its stream had failed."""
    stream = ab.Stream(device)
    array = ab.zeros(4, stream=stream)
    with failure(stream):
        ab.fill(array, 1, stream=stream)
    return array


OBSERVERS = {
    "numpy": lambda array: array.numpy(),
    "numpy of a view": lambda array: array[1:].numpy(),
}

CPU_OBSERVERS = {
    "host": lambda array: array.host().__enter__(),
    "host to write": lambda array: array.host(write=True).__enter__(),
    "__array__": np.asarray,
    "__dlpack__": np.from_dlpack,
}


@pytest.mark.parametrize("observe", OBSERVERS.values(), ids=OBSERVERS)
def test_a_readback_of_what_a_failed_stream_should_have_written_raises(lost, observe):
    with pytest.raises(FAILURES):
        observe(lost)


@pytest.mark.parametrize("observe", CPU_OBSERVERS.values(), ids=CPU_OBSERVERS)
def test_no_view_is_given_of_what_a_failed_stream_should_have_written(device, lost, observe):
    if device.kind != "cpu":
        pytest.skip("the host has no view of a GPU's memory")
    with pytest.raises(FAILURES):
        observe(lost)


def test_a_failure_is_raised_every_time_and_is_the_same(lost):
    messages = set()
    for _ in range(3):
        with pytest.raises(FAILURES) as error:
            lost.numpy()
        messages.add(str(error.value))
    assert len(messages) == 1


class Thing:
    """A Python object to which there are weak references."""


def test_a_failure_that_was_caught_keeps_nothing_alive(device):
    def catch():
        thing, stream = Thing(), ab.Stream(device)
        ab.testing.fail(stream)
        with pytest.raises(FAILURES):
            stream.synchronize()
        return weakref.ref(thing)

    caught = catch()
    gc.collect()
    assert caught() is None
    device.synchronize()


def test_a_failure_is_raised_on_every_thread(lost, in_thread):
    for reading in [in_thread(lost.numpy) for _ in range(4)]:
        with pytest.raises(FAILURES):
            reading.result(TIMEOUT)


def test_a_readback_that_waits_for_a_failure_ends(device, in_thread):
    stream = ab.Stream(device)
    array = ab.zeros(4, stream=stream)
    with failure(stream):
        ab.fill(array, 1, stream=stream)
        reading = in_thread(array.numpy)
        assert held(reading)
    with pytest.raises(FAILURES):
        reading.result(TIMEOUT)


def test_an_array_made_by_a_failed_stream_cannot_be_read(device):
    stream = ab.Stream(device)
    with failure(stream):
        array = ab.ones(4, stream=stream)
    with pytest.raises(FAILURES):
        array.numpy()


@pytest.mark.parametrize("how", ["wait_stream", "wait_event"])
def test_a_stream_that_waited_for_a_failed_one_writes_nothing_either(device, how):
    first, second = ab.Stream(device), ab.Stream(device)
    array = ab.zeros(4, stream=second)
    with failure(first):
        if how == "wait_stream":
            second.wait_stream(first)
        else:
            second.wait_event(first.record_event())
        ab.fill(array, 1, stream=second)
    with pytest.raises(FAILURES):
        array.numpy()


def test_a_failure_crosses_devices_with_the_wait(device, other_device):
    first, second = ab.Stream(device), ab.Stream(other_device)
    array = ab.zeros(4, stream=second)
    with failure(first):
        second.wait_stream(first)
        ab.fill(array, 1, stream=second)
    with pytest.raises(FAILURES):
        array.numpy()


def test_one_failed_stream_of_several_writers_is_enough(device):
    array, good, bad = ab.array(np.zeros(4, "float32"), device=device), ab.Stream(device), ab.Stream(device)
    ab.fill(array[:2], 1, stream=good)
    with failure(bad):
        ab.fill(array[2:], 1, stream=bad)
    with pytest.raises(FAILURES):
        array.numpy()


def test_a_failed_write_is_told_of_after_other_streams_wrote_other_parts(device):
    """A new access is the time to forget those that are over."""
    array, good, bad = ab.array(np.zeros(4, "float32"), device=device), ab.Stream(device), ab.Stream(device)
    with failure(bad):
        ab.fill(array[2:], 1, stream=bad)
    with pytest.raises(FAILURES):
        bad.synchronize()
    ab.fill(array[:1], 1, stream=good)
    ab.fill(array[1:2], 1, stream=good)
    with pytest.raises(FAILURES):
        array.numpy()


def test_arrays_of_other_streams_know_nothing_of_a_failure(device, lost):
    with pytest.raises(FAILURES):
        lost.numpy()
    stream = ab.Stream(device)
    array, result = ab.full(4, 3, "float32", stream=stream), ab.empty(4, stream=stream)
    ab.copy(result, array, stream=stream)
    np.testing.assert_array_equal(result.numpy(), np.full(4, 3))
    np.testing.assert_array_equal(ab.array(values(4), device=device).numpy(), values(4))


def test_an_array_that_a_failed_stream_should_have_read_is_whole(device):
    array, result = ab.array(values(4), device=device), ab.array(values(4), device=device)
    stream = ab.Stream(device)
    with failure(stream):
        ab.copy(result, array, stream=stream)
    with pytest.raises(FAILURES):
        stream.synchronize()
    np.testing.assert_array_equal(array.numpy(), values(4))


def test_the_later_work_of_a_failed_stream_does_not_run():
    data, stream = values(4), ab.Stream("cpu")
    array = ab.asarray(data)
    with failure(stream):
        ab.fill(array, 0, stream=stream)
        ab.copy(array[:2], array[2:], stream=stream)
    with pytest.raises(FAILURES):
        stream.synchronize()
    np.testing.assert_array_equal(data, values(4))


def test_arrays_may_be_dropped_after_a_failure(device):
    stream = ab.Stream(device)
    with failure(stream):
        arrays = [ab.ones(1000, stream=stream) for _ in range(10)]
    with pytest.raises(FAILURES):
        stream.synchronize()
    arrays.clear()
    gc.collect()
    stream.close()
    np.testing.assert_array_equal(ab.array(values(1000), device=device).numpy(), values(1000))


def test_arrays_may_be_dropped_before_a_failure(device):
    stream = ab.Stream(device)
    with failure(stream):
        ab.fill(ab.ones(1000, stream=stream), 2, stream=stream)
        gc.collect()
    with pytest.raises(FAILURES):
        stream.synchronize()
    np.testing.assert_array_equal(ab.array(values(1000), device=device).numpy(), values(1000))


def test_borrowed_memory_is_given_back_after_a_failure():
    data, gone = values(4), threading.Event()
    weakref.finalize(data, gone.set)
    stream = ab.Stream("cpu")
    with failure(stream):
        ab.fill(ab.asarray(data), 0, stream=stream)
        del data
        gc.collect()
    assert comes(gone)


@pytest.mark.numba
def test_kernels_after_a_failure_do_not_run(device):
    @ab.kernel
    def write(i, y: ab.Out):
        y[i] = 1

    stream = ab.Stream(device)
    array = ab.zeros(4, stream=stream)
    ab.launch(write, 4, array, stream=stream)
    with failure(stream):
        ab.launch(write, 4, array, stream=stream)
    with pytest.raises(FAILURES):
        array.numpy()
