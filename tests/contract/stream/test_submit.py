"""`submit`: Python functions that run in stream order."""

import contextlib
import gc
import sys
import sysconfig
import threading
import weakref
from concurrent.futures import CancelledError, Future

import pytest

import anabranch as ab

from ..arrays import comes


def test_a_future_gives_the_result():
    future = ab.Stream().submit(int, "101", base=2)
    assert isinstance(future, Future)
    assert future.result(10) == 5


def test_arguments_of_any_name_reach_the_function():
    future = ab.Stream().submit(lambda *args, **kwargs: (args, kwargs), 1, 2, stream=3, name=4)
    assert future.result(10) == ((1, 2), {"stream": 3, "name": 4})


def test_functions_run_in_stream_order():
    stream, done = ab.Stream(), []
    futures = [stream.submit(done.append, index) for index in range(500)]
    futures[-1].result(10)
    assert done == list(range(500))


def test_functions_of_one_stream_do_not_overlap():
    stream, inside, most = ab.Stream(), [], []

    def body():
        inside.append(None)
        most.append(len(inside))
        inside.pop()

    for _ in range(200):
        stream.submit(body)
    stream.synchronize()
    assert set(most) == {1}


def test_a_function_runs_on_another_thread():
    assert ab.Stream().submit(threading.get_ident).result(10) != threading.get_ident()


def test_submit_returns_before_the_function_has_run(stream):
    with ab.testing.Gate(stream):
        future = stream.submit(int)
        assert not future.done()
        assert not future.running()
        assert not stream.query()
    assert future.result(10) == 0


def test_later_work_starts_after_the_function():
    stream, other, go = ab.Stream(), ab.Stream(), threading.Event()
    stream.submit(go.wait, 30)
    event = stream.record_event()
    other.wait_event(event)
    assert not stream.query()
    assert not event.query()
    assert not other.query()
    go.set()
    other.synchronize()
    assert stream.query()


def test_the_future_is_done_once_the_stream_is(stream):
    futures = [stream.submit(int) for _ in range(50)]
    stream.synchronize()
    assert all(future.done() for future in futures)


def test_the_future_is_running_while_the_function_runs():
    stream, started, go = ab.Stream(), threading.Event(), threading.Event()

    def body():
        started.set()
        return go.wait(30)

    future = stream.submit(body)
    assert started.wait(10)
    assert future.running()
    assert not future.cancel()
    go.set()
    assert future.result(10) is True


def test_a_function_sees_the_work_before_it(stream):
    array = ab.zeros(100, stream=stream)
    ab.fill(array, 7, stream=stream)
    assert stream.submit(lambda: array.numpy().sum()).result(10) == 700


def test_functions_of_different_streams_run_at_the_same_time():
    meet = threading.Barrier(20, timeout=30)
    futures = [ab.Stream().submit(meet.wait) for _ in range(20)]
    assert sorted(future.result(30) for future in futures) == list(range(20))


def test_functions_of_different_devices_run_at_the_same_time():
    meet = threading.Barrier(len(ab.devices()), timeout=30)
    futures = [ab.Stream(device).submit(meet.wait) for device in ab.devices()]
    assert sorted(future.result(30) for future in futures) == list(range(len(futures)))


# -- errors --


class Refusal(BaseException):
    """No `Exception`."""


@pytest.mark.parametrize("error", [ValueError("no"), Refusal("no"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_function_that_raises_fails_its_future_and_nothing_else(error, capfd, stream, other):
    def body():
        raise error

    before, failed, after = stream.submit(int), stream.submit(body), stream.submit(int)
    other.wait_stream(stream)
    assert failed.exception(10) is error
    assert (before.result(10), after.result(10)) == (0, 0)
    stream.synchronize()
    other.synchronize()
    assert stream.query()
    assert capfd.readouterr() == ("", "")


def test_wrong_arguments_fail_the_future():
    assert isinstance(ab.Stream().submit(lambda: None, 1).exception(10), TypeError)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_future_that_somebody_else_settles_does_not_hold_the_stream(when):
    stream, started, go, called = ab.Stream(), threading.Event(), threading.Event(), []
    gate = ab.testing.Gate(stream)
    future = stream.submit(lambda: (started.set(), go.wait(30)))
    future.add_done_callback(called.append)
    if when == "meanwhile":
        gate.open()
        assert started.wait(10)
    future.set_result("theirs")
    gate.open()
    go.set()
    assert stream.submit(int).result(10) == 0
    stream.synchronize()
    assert future.result(10) == "theirs"
    assert called == [future]


@pytest.mark.thread_unsafe(reason="changes what ends of threads call")
def test_a_callback_that_ends_its_thread_does_not_hold_the_stream(monkeypatch):
    stream, ended = ab.Stream(), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: ended.set())
    with ab.testing.Gate(stream):
        future = stream.submit(int)
        future.add_done_callback(lambda _: sys.exit())
    assert ended.wait(10)
    assert [stream.submit(int, number).result(10) for number in range(20)] == list(range(20))


@pytest.fixture
def without_collector():
    """What refers to itself is never let go."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="without the interpreter lock a traceback goes once the host thread that made it runs Python again",
)
@pytest.mark.thread_unsafe(reason="turns the collector off")
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("retrieve", ["result", "exception"])
def test_a_failed_future_that_nobody_has_keeps_nothing(retrieve):
    gone = threading.Event()

    def body():
        array = ab.zeros(10)
        weakref.finalize(array, gone.set)
        raise ValueError("no")

    with contextlib.suppress(ValueError):
        # Kept in no variable here: the traceback of what is raised has this frame.
        getattr(ab.Stream().submit(body), retrieve)(10)
    assert comes(gone)


# -- cancelling --


def test_a_cancelled_function_does_not_run_and_the_stream_goes_on():
    stream, done = ab.Stream(), []
    with ab.testing.Gate(stream):
        futures = [stream.submit(done.append, index) for index in range(3)]
        assert futures[1].cancel()
        assert futures[1].cancelled()
    stream.synchronize()
    assert done == [0, 2]
    with pytest.raises(CancelledError):
        futures[1].result(10)


def test_a_function_that_has_run_cannot_be_cancelled():
    future = ab.Stream().submit(int)
    future.result(10)
    assert not future.cancel()


def test_a_dropped_future_drops_no_function():
    stream, done = ab.Stream(), []
    with ab.testing.Gate(stream):
        stream.submit(done.append, 1)
    stream.synchronize()
    assert done == [1]


# -- inside a function --


def test_a_function_may_enqueue_on_its_own_stream():
    stream, done = ab.Stream(), []

    def body():
        done.append("first")
        again = stream.submit(done.append, "third")
        done.append("second")
        return again

    stream.submit(body).result(10).result(10)
    assert done == ["first", "second", "third"]


def test_functions_may_enqueue_one_another_many_times():
    stream, finished, count = ab.Stream(), Future(), iter(range(1000))

    def body():
        if next(count, None) is None:
            finished.set_result(True)
        else:
            stream.submit(body)

    stream.submit(body)
    assert finished.result(30)


def test_a_function_may_enqueue_on_other_streams_and_wait_for_them(other_device):
    streams = [ab.Stream(), ab.Stream(other_device)]

    def body():
        results = [stream.submit(int, 3).result(10) for stream in streams]
        for stream in streams:
            stream.record_event().synchronize()
            stream.synchronize()
        return results

    assert ab.Stream().submit(body).result(20) == [3, 3]


def test_functions_that_wait_for_other_streams_do_not_use_up_the_threads():
    depth = 50

    def body(level):
        if level == depth:
            return level
        return ab.Stream(device).submit(body, level + 1).result(30)

    device = ab.current_device()
    assert ab.Stream().submit(body, 0).result(30) == depth


def test_a_stream_may_be_current_in_a_function(device):
    def body():
        with ab.Stream(device) as stream:
            array = ab.full(10, 2.0)
            inside = ab.current_stream() == stream
        return inside, ab.current_stream(device) == ab.default_stream(device), array.numpy().sum()

    assert ab.Stream().submit(body).result(10) == (True, True, 20)


def test_a_function_may_wait_in_stream_order_for_another(device):
    done = []

    def body():
        a, b = ab.Stream(device), ab.Stream(device)
        a.submit(done.append, "a")
        b.wait_stream(a)
        b.submit(done.append, "b").result(10)

    ab.Stream().submit(body).result(10)
    assert done == ["a", "b"]


def test_a_callback_of_a_future_may_enqueue():
    stream, finished = ab.Stream(), Future()
    with ab.testing.Gate(stream):
        stream.submit(int).add_done_callback(lambda _: stream.submit(finished.set_result, True))
    assert finished.result(10)


def test_a_function_may_open_a_gate():
    held = ab.Stream()
    gate = ab.testing.Gate(held)
    work = held.submit(int)
    ab.Stream().submit(gate.open)
    assert work.result(10) == 0
