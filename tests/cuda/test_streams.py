"""What streams and events are to the driver: handles, priorities, flags."""

import threading
import time

import pytest

import anabranch as ab

from .gpu import SIZE, checked

NON_BLOCKING = 1
BLOCKING_SYNC, DISABLE_TIMING = 1, 2


# Streams


def test_the_priorities_are_those_of_the_driver(cuda, driver):
    assert cuda.priority_range == checked(driver.cuCtxGetStreamPriorityRange())
    lowest, highest = cuda.priority_range
    assert highest < lowest == 0


@pytest.mark.parametrize("asked", [0, -1, -2, -5, -6, -(10**6), -(2**70), 1, 10**6, 2**70])
def test_a_priority_is_clamped_and_the_driver_s(cuda, driver, asked):
    lowest, highest = cuda.priority_range
    stream = ab.Stream(cuda, priority=asked)
    assert stream.priority == min(max(asked, highest), lowest)
    assert checked(driver.cuStreamGetPriority(stream.handle)) == stream.priority


@pytest.mark.parametrize("non_blocking", [True, False])
def test_the_driver_knows_whether_a_stream_blocks(cuda, driver, non_blocking):
    stream = ab.Stream(cuda, non_blocking=non_blocking)
    assert bool(checked(driver.cuStreamGetFlags(stream.handle)) & NON_BLOCKING) == non_blocking
    assert stream.non_blocking == non_blocking


def test_a_stream_is_of_the_context_that_all_libraries_share(cuda, driver):
    assert int(checked(driver.cuStreamGetCtx(ab.Stream(cuda).handle))) == int(checked(driver.cuCtxGetCurrent()))


def test_a_stream_used_again_is_what_was_asked_for(cuda, driver):
    for _ in range(3):
        for priority in (0, -1, -5):
            for non_blocking in (True, False):
                stream = ab.Stream(cuda, priority=priority, non_blocking=non_blocking)
                assert checked(driver.cuStreamGetPriority(stream.handle)) == priority
                assert bool(checked(driver.cuStreamGetFlags(stream.handle)) & NON_BLOCKING) == non_blocking
                stream.close()


def test_living_streams_have_handles_of_their_own(cuda):
    streams = [ab.Stream(cuda) for _ in range(100)]
    handles = {stream.handle for stream in streams}
    assert len(handles) == 100
    assert not handles & {0, 1, 2}


def test_the_default_streams_have_the_handles_of_the_driver(cuda, in_thread):
    assert (ab.legacy_stream(cuda).handle, ab.per_thread_stream(cuda).handle) == (1, 2)
    assert ab.legacy_stream(cuda).__cuda_stream__() == (0, 1)
    assert ab.default_stream(cuda).handle in (1, 2)
    assert in_thread(lambda: ab.per_thread_stream(cuda).handle).result(10) == 2
    assert not ab.legacy_stream(cuda).non_blocking
    assert not ab.per_thread_stream(cuda).non_blocking


@pytest.mark.parametrize("handle", [0, 3, 1000, 2**63 + 1])
def test_a_handle_of_no_stream_is_refused(cuda, handle):
    with pytest.raises(ValueError, match="handle"):
        ab.Stream.from_external(handle, cuda)


@pytest.mark.parametrize("non_blocking", [True, False])
def test_a_blocking_stream_is_in_order_with_what_others_put_into_the_legacy_one(cuda, delay, foreign, non_blocking):
    stream = ab.Stream(cuda, non_blocking=non_blocking)
    a, b = ab.zeros(SIZE, "uint8", stream=stream), ab.zeros(SIZE, "uint8", stream=stream)
    stream.synchronize()
    began = time.monotonic()
    delay(stream, 500)
    ab.fill(a, 3, stream=stream)
    foreign.copy(1, b, a)
    foreign.synchronize(1)
    in_order = stream.query()
    if time.monotonic() - began > 0.5 and non_blocking:
        pytest.skip("the machine is too slow to tell")
    assert in_order != non_blocking
    assert (b.numpy() == 3).all() != non_blocking


def test_an_array_is_usable_on_any_thread_and_the_primary_context_stays_where_none_was(cuda, driver, in_threads):
    primary = int(checked(driver.cuCtxGetCurrent()))

    def use(number):
        assert int(checked(driver.cuCtxGetCurrent())) == 0
        stream = ab.Stream(cuda)
        array = ab.full(1000, number, "int32", stream=stream)
        total = int(array.numpy().sum())
        stream.record_event().synchronize()
        array.close()
        del stream
        assert int(checked(driver.cuCtxGetCurrent())) == primary
        return total

    assert in_threads(8, use) == [1000 * number for number in range(8)]


# Events


def test_the_handle_of_an_event_is_the_driver_s(cuda, driver, delay):
    stream = ab.Stream(cuda)
    event = ab.Event(device=cuda)
    delay(stream)
    event.record(stream)
    (status,) = driver.cuEventQuery(event.handle)
    assert status == driver.CUresult.CUDA_ERROR_NOT_READY
    checked(driver.cuEventSynchronize(event.handle))
    assert event.query()
    assert stream.query()


def test_an_event_has_a_handle_before_it_is_recorded(cuda, driver, delay):
    event, stream = ab.Event(device=cuda), ab.Stream(cuda)
    handle = event.handle
    checked(driver.cuEventQuery(handle))
    assert event.query()
    delay(stream)
    event.record(stream)
    assert event.handle == handle
    (status,) = driver.cuEventQuery(handle)
    assert status == driver.CUresult.CUDA_ERROR_NOT_READY
    event.synchronize()
    assert len({ab.Event(device=cuda).handle, handle}) == 2


def test_others_wait_for_our_event_by_its_handle(cuda, driver, delay, foreign):
    ours, theirs = ab.Stream(cuda), checked(driver.cuStreamCreate(NON_BLOCKING))
    a, b = ab.zeros(SIZE, "uint8", stream=ours), ab.zeros(SIZE, "uint8", stream=ours)
    delay(ours)
    ab.fill(a, 3, stream=ours)
    event = ours.record_event()
    checked(driver.cuStreamWaitEvent(theirs, event.handle, 0))
    foreign.copy(theirs, b, a)
    foreign.synchronize(theirs)
    assert (b.numpy() == 3).all()
    checked(driver.cuStreamDestroy(theirs))


def test_a_wait_keeps_the_record_that_it_found_whatever_the_handle_is(cuda, delay):
    first, second, third = (ab.Stream(cuda) for _ in range(3))
    event = ab.Event(device=cuda)
    event.record(first)
    third.wait_event(event)
    delay(second)
    event.record(second)
    third.synchronize()
    assert not event.query()
    event.synchronize()


def test_times_are_those_of_the_gpu(cuda, driver, delay):
    stream = ab.Stream(cuda)
    begin, end = (ab.Event(enable_timing=True, device=cuda) for _ in range(2))
    begin.record(stream)
    delay(stream, 50)
    end.record(stream)
    assert 50 <= begin.elapsed_time(end) < 500
    theirs = checked(driver.cuEventElapsedTime(begin.handle, end.handle))
    assert theirs == pytest.approx(begin.elapsed_time(end))


@pytest.mark.parametrize("options", [{}, {"blocking": True}, {"interprocess": True}, {"enable_timing": True}], ids=str)
def test_an_event_of_any_kind_works(cuda, delay, options):
    stream, event = ab.Stream(cuda), ab.Event(**options, device=cuda)
    # Makes the driver's event, which takes it long for one between processes.
    assert event.handle != 0
    for _ in range(3):
        delay(stream, 10)
        event.record(stream)
        assert not event.query()
        event.synchronize()
        assert event.query()
        assert stream.query()


def test_only_an_interprocess_event_can_be_shown_to_other_processes(cuda, driver):
    event = ab.Event(interprocess=True, device=cuda)
    status, _ = driver.cuIpcGetEventHandle(event.handle)
    if status == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        pytest.skip("this system shares no events between processes")
    assert int(status) == 0, status
    status, _ = driver.cuIpcGetEventHandle(ab.Event(device=cuda).handle)
    assert int(status) != 0
    with pytest.raises(ValueError, match="timing"):
        ab.Event(interprocess=True, enable_timing=True, device=cuda)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_host_that_waits_for_long_sleeps(cuda, delay, blocking):
    stream, event = ab.Stream(cuda), ab.Event(blocking=blocking, device=cuda)
    delay(stream, 1000)
    event.record(stream)
    wall, used = time.monotonic(), time.thread_time()
    event.synchronize()
    wall, used = time.monotonic() - wall, time.thread_time() - used
    assert wall > 0.5
    assert used < 0.3 * wall


def test_a_host_that_waits_holds_up_no_other_thread(cuda, delay):
    stream, over = ab.Stream(cuda), threading.Event()
    counted = []

    def count():
        number = 0
        while not over.is_set():
            number += 1
        counted.append(number)

    thread = threading.Thread(target=count)
    delay(stream, 500)
    thread.start()
    stream.synchronize()
    over.set()
    thread.join()
    assert counted[0] > 10_000
