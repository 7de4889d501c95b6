"""`testing.Gate` holds a stream, `testing.fail` fails one; what an asynchronous failure does."""

import asyncio
import inspect
import time
from pathlib import Path

import pytest

import anabranch as ab

FAILURE = (ab.KernelError, ab.DriverError)  # the second where a driver tells


def poll(target):
    """Ask until the work is done."""
    while not target.query():
        time.sleep(0)


async def wait(awaitable):
    await awaitable


# -- Gate --


def test_a_gate_holds_its_stream_until_it_is_opened(enqueue):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    assert not stream.query()
    assert gate.open() is None
    stream.synchronize()


def test_a_gate_opens_at_the_end_of_a_with():
    stream = ab.Stream()
    with ab.testing.Gate(stream):
        work = stream.submit(int)
        assert not work.done()
    assert work.result(10) == 0


def test_a_gate_opens_when_the_block_raises():
    stream = ab.Stream()
    with pytest.raises(ZeroDivisionError), ab.testing.Gate(stream):
        1 / 0  # noqa: B018
    stream.synchronize()


def test_opening_again_does_nothing():
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    gate.open()
    gate.open()
    with gate:
        pass
    gate.open()
    with ab.testing.Gate(stream):
        gate.open()
        assert not stream.query()
    stream.synchronize()


def test_any_thread_may_open(in_thread):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    in_thread(gate.open).result(10)
    stream.synchronize()


def test_a_gate_holds_from_now():
    stream = ab.Stream()
    before = stream.submit(int)
    with ab.testing.Gate(stream):
        assert before.result(10) == 0
        assert not stream.query()


def test_a_gate_may_be_opened_before_its_stream_comes_to_it():
    stream = ab.Stream()
    first, second = ab.testing.Gate(stream), ab.testing.Gate(stream)
    second.open()
    assert not stream.query()
    first.open()
    stream.synchronize()


def test_every_gate_of_a_stream_holds_it():
    stream = ab.Stream()
    gates = [ab.testing.Gate(stream) for _ in range(3)]
    for gate in gates:
        assert not stream.query()
        gate.open()
    stream.synchronize()


def test_a_gate_holds_nothing_but_its_stream(enqueue, other_device):
    stream = ab.Stream()
    with ab.testing.Gate(stream):
        array = ab.zeros(1000)
        ab.empty(1000, stream=stream)
        assert array.numpy().sum() == 0
        for other in [ab.Stream(), ab.Stream(priority=-1), ab.Stream(other_device)]:
            enqueue(other)
            other.synchronize()
        assert not stream.query()


def test_many_streams_may_be_held_while_others_work(enqueue):
    gates = [ab.testing.Gate(ab.Stream()) for _ in range(500)]
    stream = ab.Stream()
    enqueue(stream)
    stream.synchronize()
    for gate in gates:
        gate.open()


def test_a_gate_holds_no_memory_that_is_freed_elsewhere():
    held, stream = ab.Stream(), ab.Stream()
    with ab.testing.Gate(held):
        for _ in range(100):
            ab.zeros(1 << 20, dtype="uint8", stream=stream)
        stream.synchronize()


@pytest.mark.parametrize("wrong", [None, 1, "stream"])
def test_a_gate_of_something_else_is_a_type_error(wrong):
    with pytest.raises(TypeError):
        ab.testing.Gate(wrong)


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
