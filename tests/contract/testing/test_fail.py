"""Errors, and what an asynchronous failure does; `testing.fail` makes one."""

import asyncio
import inspect
import time
from pathlib import Path

import pytest

import anabranch as ab

pytestmark = pytest.mark.usefixtures("failures_forgotten")

FAILURE = (ab.KernelError, ab.DriverError)  # the second where a driver tells


def poll(target):
    """Ask until the work is done."""
    while not target.query():
        time.sleep(0)


async def wait(awaitable):
    await awaitable


# -- errors --


@pytest.mark.parametrize(
    "name",
    [
        "DeviceError",
        "ClosedError",
        "EventError",
        "CaptureError",
        "RaceError",
        "CompileError",
        "ForkError",
        "KernelError",
        "DriverError",
    ],
)
def test_every_error_is_an_error_of_ours(name):
    assert issubclass(getattr(ab, name), ab.Error)
    assert issubclass(ab.Error, Exception)


def test_a_driver_error_tells_code_and_name():
    error = ab.DriverError(2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert (error.code, error.name) == (2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert "CUDA_ERROR_OUT_OF_MEMORY" in str(error)


# -- fail --


def failed_stream():
    stream = ab.Stream()
    ab.testing.fail(stream)
    return stream


OBSERVE_STREAM = {
    "query": poll,
    "synchronize": lambda stream: stream.synchronize(),
    "await": lambda stream: asyncio.run(wait(stream)),
    "numpy": lambda stream: ab.zeros(1, stream=stream).numpy(),
    "event.query": lambda stream: poll(stream.record_event()),
    "event.synchronize": lambda stream: stream.record_event().synchronize(),
    "await of an event": lambda stream: asyncio.run(wait(stream.record_event())),
}
observe_stream_each_way = pytest.mark.parametrize("observe", OBSERVE_STREAM.values(), ids=OBSERVE_STREAM)

OBSERVE_EVENT = {
    "query": poll,
    "synchronize": lambda event: event.synchronize(),
    "await": lambda event: asyncio.run(wait(event)),
    "elapsed_time": lambda event: event.elapsed_time(event),
    "elapsed_time to it": lambda event: ab.Stream().record_event(ab.Event(enable_timing=True)).elapsed_time(event),
}
observe_event_each_way = pytest.mark.parametrize("observe", OBSERVE_EVENT.values(), ids=OBSERVE_EVENT)


def test_a_failure_that_is_raised_again_says_how_to_go_on():
    stream = failed_stream()
    with pytest.raises(FAILURE) as first:
        stream.synchronize()
    assert not hasattr(first.value, "__notes__")
    with pytest.raises(FAILURE) as second:
        stream.synchronize()
    if type(second.value) is ab.KernelError:  # a driver's error ends the whole device
        assert "ab.Stream().use()" in second.value.__notes__[0]


@observe_stream_each_way
def test_every_observation_of_a_failed_stream_raises_from_then_on(observe):
    stream = failed_stream()
    for _ in range(3):
        with pytest.raises(FAILURE):
            observe(stream)


@observe_event_each_way
def test_every_observation_of_a_failed_event_raises_from_then_on(observe):
    stream, event = ab.Stream(), ab.Event(enable_timing=True)
    with ab.testing.Gate(stream):
        ab.testing.fail(stream)
        event.record(stream)
    for _ in range(3):
        with pytest.raises(FAILURE):
            observe(event)


@observe_stream_each_way
@pytest.mark.parametrize(
    "follow",
    [
        lambda later, earlier: later.wait_stream(earlier),
        lambda later, earlier: later.wait_event(earlier.record_event()),
    ],
    ids=["wait_stream", "wait_event"],
)
def test_a_stream_that_waited_for_a_failed_one_fails(observe, follow, other_device):
    earlier, later, last = ab.Stream(), ab.Stream(), ab.Stream(other_device)
    with ab.testing.Gate(earlier):
        ab.testing.fail(earlier)
        follow(later, earlier)
        follow(last, later)
    for stream in (later, last):
        with pytest.raises(FAILURE):
            observe(stream)


def test_a_fork_of_a_failed_stream_fails_its_parent():
    parent = ab.Stream()
    with ab.fork(2, stream=parent) as branches:
        ab.testing.fail(branches[1])
    with pytest.raises(FAILURE):
        parent.synchronize()


def test_failing_waits_for_its_turn():
    stream = ab.Stream()
    with ab.testing.Gate(stream):
        before = stream.record_event()
        work = stream.submit(int)
        ab.testing.fail(stream)
        assert before.query() is False
        assert stream.query() is False
    assert work.result(10) == 0
    with pytest.raises(FAILURE):
        stream.synchronize()


def test_later_work_of_a_failed_stream_does_not_run():
    stream, waiting, done = ab.Stream(), ab.Stream(), []
    with ab.testing.Gate(stream):
        ab.testing.fail(stream)
        futures = [stream.submit(done.append, 1)]
        waiting.wait_stream(stream)
        futures.append(waiting.submit(done.append, 2))
    for future in futures:
        with pytest.raises(FAILURE):
            future.result(10)
    assert done == []


def test_an_array_written_after_a_failure_is_not_read():
    stream, array = ab.Stream(), ab.zeros(4)
    array.numpy()
    with ab.testing.Gate(stream):
        ab.testing.fail(stream)
        ab.fill(array, 1, stream=stream)
    with pytest.raises(FAILURE):
        array.numpy()


def test_an_array_that_no_failed_stream_used_is_read():
    array = ab.full(4, 2.0, stream=ab.Stream())
    stream = failed_stream()
    with pytest.raises(FAILURE):
        stream.synchronize()
    assert array.numpy().tolist() == [2, 2, 2, 2]


@pytest.mark.thread_unsafe(reason="a query of the legacy stream sees the blocking streams of all threads")
def test_other_streams_go_on(enqueue, other_device):
    before = ab.Stream()
    stream = failed_stream()
    with pytest.raises(FAILURE):
        stream.synchronize()
    for other in [before, ab.Stream(), ab.Stream(other_device), ab.legacy_stream(), ab.per_thread_stream()]:
        enqueue(other)
        other.synchronize()
        assert other.query()


def test_a_wait_for_what_was_done_before_the_failure_does_not_fail():
    stream, other = ab.Stream(), ab.Stream()
    with ab.testing.Gate(stream):
        other.wait_event(stream.record_event())
        ab.testing.fail(stream)
    assert other.submit(int).result(10) == 0
    other.synchronize()


def test_fail_raises_nothing_itself_and_enqueueing_before_it_is_seen_neither():
    stream = ab.Stream()
    with ab.testing.Gate(stream):
        assert ab.testing.fail(stream) is None
        assert ab.testing.fail(stream) is None
        stream.submit(int)
        stream.record_event()
        ab.zeros(1, stream=stream)


def test_a_failed_stream_is_left_and_closed_quietly():
    with failed_stream() as stream:
        pass
    stream.close()
    assert stream.closed
    del stream


def test_the_error_may_be_given():
    stream = ab.Stream()
    ab.testing.fail(stream, ab.KernelError("the furnace is out"))
    with pytest.raises(FAILURE, match="the furnace is out"):
        stream.synchronize()


def test_the_first_failure_is_the_one_that_is_told():
    stream, waiting = ab.Stream(), ab.Stream()
    with ab.testing.Gate(stream):
        ab.testing.fail(stream, ab.KernelError("first"))
        ab.testing.fail(stream, ab.KernelError("second"))
        waiting.wait_stream(stream)
    for failed in (stream, waiting):
        with pytest.raises(FAILURE, match="first"):
            failed.synchronize()


def test_an_error_that_is_raised_often_does_not_grow():
    stream, lengths = failed_stream(), []
    for _ in range(4):
        with pytest.raises(FAILURE) as caught:
            stream.synchronize()
        lengths.append(len(caught.traceback))
    assert lengths[1] == lengths[2] == lengths[3]  # the first one may have waited


def test_where_the_message_names_a_line_it_is_the_one_that_enqueued():
    stream = ab.Stream()
    line = inspect.currentframe().f_lineno + 1
    ab.testing.fail(stream)
    with pytest.raises(FAILURE) as caught:
        stream.synchronize()
    file = Path(__file__).name
    assert file not in str(caught.value) or f"{file}:{line}" in str(caught.value)


@pytest.mark.parametrize("synchronize", ["ab.Device(alias).synchronize()", "ab.synchronize(alias)", "ab.synchronize()"])
def test_synchronizing_the_device_raises(synchronize, device, run_python):
    script = f"""
        import anabranch as ab

        alias = {device.alias!r}
        stream = ab.Stream(alias)
        ab.testing.fail(stream)
        for _ in range(2):
            try:
                {synchronize}
            except (ab.KernelError, ab.DriverError):
                print("raised")
        """
    assert run_python(script).split() == ["raised", "raised"]


@pytest.mark.parametrize(
    ("failed", "following"),
    [("ab.Stream(non_blocking=False)", "ab.legacy_stream()"), ("ab.legacy_stream()", "ab.Stream(non_blocking=False)")],
    ids=["blocking", "legacy"],
)
def test_a_failure_follows_the_order_of_the_legacy_stream(failed, following, device, run_python):
    script = f"""
        import anabranch as ab

        with ab.Device({device.alias!r}):
            failed, following = {failed}, {following}
            with ab.testing.Gate(failed):
                ab.testing.fail(failed)
                work = following.submit(print, "ran")
            try:
                work.result(10)
            except (ab.KernelError, ab.DriverError):
                print("raised")
            ab.Stream().synchronize()
        """
    assert run_python(script).split() == ["raised"]


@pytest.mark.thread_unsafe(reason="work of another thread counts as what the failed one came after")
def test_a_write_does_not_fail_with_an_earlier_reader(device):
    x = ab.ones(4, device=device)
    ab.current_stream(device).synchronize()
    failed, stream = ab.Stream(device), ab.Stream(device)
    y = ab.empty(4, device=device, stream=failed)
    ab.testing.fail(failed)
    with ab.hazards("auto"):
        ab.copy(y, x, stream=failed)
        with pytest.raises(FAILURE):
            failed.synchronize()
        ab.fill(x, 2, stream=stream)
        stream.synchronize()
        assert x.tolist() == [2] * 4


def test_a_write_fails_with_an_earlier_writer(device):
    x = ab.ones(4, device=device)
    ab.current_stream(device).synchronize()
    failed, stream = ab.Stream(device), ab.Stream(device)
    ab.testing.fail(failed)
    with ab.hazards("auto"):
        ab.fill(x, 2, stream=failed)
        with pytest.raises(FAILURE):
            failed.synchronize()
        ab.fill(x[:3], 3, stream=stream)  # the last element is lost
        with pytest.raises(FAILURE):
            stream.synchronize()


@pytest.mark.thread_unsafe(reason="work of another thread counts as what the failed one came after")
@pytest.mark.parametrize("source", [None, "array", "list"])
def test_what_a_failed_stream_has_left_may_be_overwritten(device, source):
    x, y = ab.ones(4, device=device), ab.full(4, 2, device=device)
    ab.current_stream(device).synchronize()
    failed, stream = ab.Stream(device), ab.Stream(device)
    ab.testing.fail(failed)
    with ab.hazards("auto"):
        ab.fill(x, 3, stream=failed)
        with pytest.raises(FAILURE):
            failed.synchronize()
        with stream:
            x[...] = {None: 2, "array": y, "list": [2] * 4}[source]
        assert x.tolist() == [2] * 4
        stream.synchronize()


@pytest.mark.thread_unsafe(reason="work of another thread counts as what the failed one came after")
@pytest.mark.parametrize("later", ["read", "write"])
def test_nothing_overtakes_what_a_failed_stream_would_have_waited_for(device, later):
    x = ab.ones(4, device=device)
    ab.current_stream(device).synchronize()
    first, failed, last = (ab.Stream(device) for _ in range(3))
    y = ab.empty(4, device=device, stream=failed)
    ab.testing.fail(failed)
    with ab.hazards("auto"):
        with ab.testing.Gate(first):
            ab.fill(x, 2, stream=first)
            ab.copy(*((y, x) if later == "read" else (x, y)), stream=failed)
            with pytest.raises(FAILURE):
                failed.synchronize()
            ab.fill(x, 3, stream=last)  # fails with that stream, or waits for the first
            with pytest.raises(FAILURE):
                last.synchronize()
        first.synchronize()
        with ab.Stream(device) as again:
            ab.fill(x, 4)
        again.synchronize()
    assert x.tolist() == [4] * 4


@pytest.mark.thread_unsafe(reason="the failed streams of another thread would be raised")
def test_a_closed_stream_s_failure_is_raised_for_the_device_until_it_was_told(device):
    x = ab.ones(4, device=device)
    failed = ab.Stream(device)
    ab.testing.fail(failed)
    ab.fill(x, 2, stream=failed)
    failed.close()
    with pytest.raises(FAILURE):
        device.synchronize()
    device.synchronize()
    with pytest.raises(FAILURE):
        x.numpy()
    device.synchronize()


@pytest.mark.thread_unsafe(reason="the failed streams of another thread would be raised")
def test_an_open_stream_s_failure_is_raised_for_the_device_each_time(device):
    failed = ab.Stream(device)
    same = ab.Stream.from_external(failed)
    ab.testing.fail(failed)
    failed.close()
    failed.close()
    for _ in range(2):
        with pytest.raises(FAILURE):
            device.synchronize()
    del same
    device.synchronize()
