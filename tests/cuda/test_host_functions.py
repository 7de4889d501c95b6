"""Host functions in stream order, while other threads are inside the driver: no deadlock, no Python on its threads."""

import threading
from concurrent.futures import wait

import numpy as np
import pytest

import anabranch as ab

from .gpu import installed

TIMEOUT = 50.0
STREAMS = 8
FUNCTIONS = 1000


@pytest.fixture
def busy(cuda, kernels, in_thread):
    """Threads that keep calling the driver, each in its own way, until the test ends."""
    over = threading.Event()
    rounds = []

    def allocate(stream):
        arrays = [ab.empty(1 << 16, "uint8", stream=stream) for _ in range(20)]
        arrays.clear()

    def launch(stream):
        for _ in range(20):
            ab.launch(kernels.spin, ab.LaunchConfig(1, 1), 1000, stream=stream)

    def synchronize(stream):
        launch(stream)
        stream.synchronize()
        cuda.synchronize()

    def record(stream):
        event = ab.Event(enable_timing=True, device=cuda)
        event.record(stream)
        event.wait(stream)
        event.synchronize()

    def read(stream):
        assert (ab.full(1000, 3, "int32", stream=stream).numpy() == 3).all()

    def copy(stream):
        with stream:
            array = ab.array(np.ones(1000))
            ab.copy(ab.empty(1000, "float64"), array)

    def repeat(body):
        stream = ab.Stream(cuda)
        count = 0
        while not over.is_set():
            body(stream)
            count += 1
        rounds.append(count)

    threads = [in_thread(repeat, body) for body in (allocate, launch, synchronize, record, read, copy)]
    yield
    over.set()
    for thread in threads:
        thread.result(TIMEOUT)
    assert all(rounds)


@pytest.fixture
def busy_torch(request, in_thread):
    """The same with PyTorch, where it is installed."""
    if not installed("torch"):
        yield
        return
    torch = request.getfixturevalue("torch")
    over = threading.Event()

    def repeat():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            while not over.is_set():
                total = torch.ones(1 << 16, device="cuda").sum()
                assert total.item() == 1 << 16
                torch.cuda.synchronize()

    threads = [in_thread(repeat) for _ in range(2)]
    yield
    over.set()
    for thread in threads:
        thread.result(TIMEOUT)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("busy", "busy_torch")
def test_a_thousand_functions_run_in_order_beside_threads_in_the_driver(cuda):
    streams = [ab.Stream(cuda, priority=-(n % 2)) for n in range(STREAMS)]
    ran = [[] for _ in streams]
    threads = set()

    def function(lane, number):
        threads.add(threading.current_thread().name)
        ran[lane].append(number)
        return lane, number

    arrays = [ab.zeros(64, "int32", stream=stream) for stream in streams]
    futures = []
    for number in range(FUNCTIONS // STREAMS):
        for lane, stream in enumerate(streams):
            ab.fill(arrays[lane], number, stream=stream)
            futures.append(stream.submit(function, lane, number))
    assert not wait(futures, TIMEOUT).not_done
    assert ran == [list(range(FUNCTIONS // STREAMS))] * STREAMS
    assert {future.result() for future in futures} == {
        (lane, number) for lane in range(STREAMS) for number in range(FUNCTIONS // STREAMS)
    }
    assert all(name.startswith("anabranch-host") for name in threads)
    for array in arrays:
        np.testing.assert_array_equal(array.numpy(), FUNCTIONS // STREAMS - 1)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("busy")
def test_functions_may_call_the_driver_themselves(cuda):
    streams = [ab.Stream(cuda) for _ in range(STREAMS)]

    def function(lane, number):
        with ab.Stream(cuda) as own:
            array = ab.full(256, lane * 1000 + number, "int64")
            own.synchronize()
            return int(array.numpy()[-1])

    futures = {
        (lane, number): stream.submit(function, lane, number)
        for number in range(25)
        for lane, stream in enumerate(streams)
    }
    for (lane, number), future in futures.items():
        assert future.result(TIMEOUT) == lane * 1000 + number


def test_a_function_sees_what_its_stream_did_and_what_comes_after_sees_the_function(cuda, delay):
    stream = ab.Stream(cuda)
    array, after = ab.zeros(1000, "int32", stream=stream), ab.zeros(1000, "int32", device="cpu", pinned=True)
    ab.synchronize("cpu")
    delay(stream)
    ab.fill(array, 3, stream=stream)
    seen = []

    def function():
        seen.append(int(array.numpy().sum()))
        with after.host(write=True) as view:
            view[:] = 7

    stream.submit(function)
    ab.copy(array, after, stream=stream)
    np.testing.assert_array_equal(array.numpy(), 7)
    assert seen == [3000]


def test_functions_of_two_streams_run_at_the_same_time(cuda):
    met = threading.Barrier(4, timeout=TIMEOUT)
    futures = [ab.Stream(cuda).submit(met.wait) for _ in range(4)]
    assert sorted(future.result(TIMEOUT) for future in futures) == [0, 1, 2, 3]


@pytest.mark.many_streams
def test_work_behind_a_function_that_runs_long_waits_in_no_queue_of_the_gpu(cuda):
    # More streams than the hardware has queues: if a held stream took one, the last would never run.
    over = threading.Event()
    held = [ab.Stream(cuda) for _ in range(140)]
    futures = [stream.submit(over.wait, TIMEOUT) for stream in held]
    arrays = [ab.full(16, 3, "int32", stream=stream) for stream in held]
    free = ab.Stream(cuda)
    np.testing.assert_array_equal(ab.full(16, 5, "int32", stream=free).numpy(), 5)
    free.synchronize()
    assert not any(future.done() for future in futures)
    over.set()
    assert all(future.result(TIMEOUT) for future in futures)
    for array in arrays:
        np.testing.assert_array_equal(array.numpy(), 3)


def test_a_function_that_raises_fails_nothing_else(cuda, delay):
    stream = ab.Stream(cuda)
    delay(stream, 5)
    future, after = stream.submit(lambda: 1 / 0), stream.submit(int, 3)
    array = ab.full(16, 3, "int32", stream=stream)
    assert isinstance(future.exception(TIMEOUT), ZeroDivisionError)
    assert after.result(TIMEOUT) == 3
    np.testing.assert_array_equal(array.numpy(), 3)


def test_callbacks_of_futures_run_on_no_thread_of_the_driver(cuda, delay):
    stream = ab.Stream(cuda)
    names, done = [], threading.Event()
    delay(stream)
    stream.submit(int).add_done_callback(lambda _: (names.append(threading.current_thread().name), done.set()))
    assert done.wait(TIMEOUT)
    assert names[0].startswith("anabranch-host")
