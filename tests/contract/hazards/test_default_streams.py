"""The default streams' order as the hazards see it, under `check`: what CuSan knows of CUDA's implicit synchronization.

The legacy stream is in order with the blocking streams of its device and with no others.
"""

import pytest

import anabranch as ab

from ..accesses import each_pair, read, ready, streams, write
from ..arrays import TIMEOUT

pytestmark = [
    pytest.mark.unseen_order,
    pytest.mark.thread_unsafe(reason="the legacy stream is in order with the blocking streams of all threads"),
]

USES = {"read": read, "write": write}

BLOCKING = {
    "blocking": lambda: ab.Stream(non_blocking=False),
    "per-thread": ab.per_thread_stream,
}
each_blocking = pytest.mark.parametrize("blocking", BLOCKING.values(), ids=BLOCKING)


@pytest.fixture(autouse=True)
def _checked(on_device):
    # What earlier tests left on the default streams is over, and known to be.
    ab.synchronize()
    with ab.hazards("check"):
        yield


def blocking_streams(count=2):
    return [ab.Stream(non_blocking=False) for _ in range(count)]


def races(*accesses):
    """Make accesses, each of which is a use, an array and a stream; whether the last one raced."""
    *others, (use, array, stream) = accesses
    for before, its_array, its_stream in others:
        before(its_array, its_stream)
    try:
        use(array, stream)
    except ab.RaceError:
        return True
    return False


# With blocking streams


@each_blocking
@each_pair
def test_the_legacy_stream_comes_after_blocking_streams(device, blocking, kind, first, second):
    array = ready(device)
    assert not races((USES[first], array, blocking()), (USES[second], array, ab.legacy_stream()))


@each_blocking
@each_pair
def test_blocking_streams_come_after_the_legacy_stream(device, blocking, kind, first, second):
    array = ready(device)
    assert not races((USES[first], array, ab.legacy_stream()), (USES[second], array, blocking()))


def test_blocking_streams_have_no_order_with_each_other(device):
    (a, b), array = blocking_streams(), ready(device)
    assert races((write, array, a), (write, array, b))


def test_a_blocking_stream_and_the_per_thread_stream_have_no_order(device):
    array = ready(device)
    assert races((write, array, ab.Stream(non_blocking=False)), (write, array, ab.per_thread_stream()))


def test_work_on_the_legacy_stream_orders_blocking_streams(device, enqueue):
    (a, b), array = blocking_streams(), ready(device)
    write(array, a)
    enqueue(ab.legacy_stream())
    write(array, b)


def test_work_on_the_legacy_stream_before_both_orders_neither(device, enqueue):
    (a, b), array = blocking_streams(), ready(device)
    enqueue(ab.legacy_stream())
    assert races((write, array, a), (write, array, b))


def test_work_on_a_blocking_stream_does_not_make_the_legacy_stream_do_anything(device, enqueue):
    (a, b, c), array = blocking_streams(3), ready(device)
    write(array, a)
    enqueue(c)
    assert races((write, array, b))


def test_an_event_of_the_legacy_stream_covers_blocking_streams(device):
    a, b, array = ab.Stream(non_blocking=False), ab.Stream(), ready(device)
    write(array, a)
    b.wait_event(ab.legacy_stream().record_event())
    write(array, b)


def test_a_blocking_stream_closed_meanwhile_is_covered_too(device):
    array = ready(device)
    stream = ab.Stream(non_blocking=False)
    write(array, stream)
    stream.close()
    del stream
    write(array, ab.legacy_stream())


def test_a_blocking_stream_made_later_comes_after_the_legacy_stream(device):
    array = ready(device)
    write(array, ab.legacy_stream())
    write(array, ab.Stream(non_blocking=False))


# With non-blocking streams


@each_pair
def test_the_legacy_stream_has_no_order_with_non_blocking_streams(device, kind, first, second):
    array = ready(device)
    assert races((USES[first], array, ab.Stream()), (USES[second], array, ab.legacy_stream()))


@each_pair
def test_non_blocking_streams_have_no_order_with_the_legacy_stream(device, kind, first, second):
    array = ready(device)
    assert races((USES[first], array, ab.legacy_stream()), (USES[second], array, ab.Stream()))


def test_work_on_the_legacy_stream_orders_no_non_blocking_streams(device, enqueue):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    enqueue(ab.legacy_stream())
    assert races((write, array, b))


def test_one_of_two_streams_that_does_not_block_is_enough_for_a_race(device, enqueue):
    blocking, other = ab.Stream(non_blocking=False), ab.Stream()
    x, y = ready(device), ready(device)
    write(x, blocking)
    write(y, other)
    enqueue(ab.legacy_stream())
    assert races((write, x, other))
    assert races((write, y, blocking))


def test_non_blocking_streams_may_wait_for_the_legacy_stream(device):
    array, stream = ready(device), ab.Stream()
    write(array, ab.legacy_stream())
    stream.wait_stream(ab.legacy_stream())
    write(array, stream)
    ab.legacy_stream().wait_stream(stream)
    write(array, ab.legacy_stream())


def test_order_goes_on_from_the_legacy_stream_to_blocking_streams(device, enqueue):
    array, stream = ready(device), ab.Stream()
    write(array, stream)
    ab.legacy_stream().wait_stream(stream)
    enqueue(ab.legacy_stream())
    write(array, ab.Stream(non_blocking=False))


# The host


HOST_WAITS = {
    "synchronize": lambda stream: stream.synchronize(),
    "event": lambda stream: stream.record_event().synchronize(),
    "future": lambda stream: stream.submit(int).result(TIMEOUT),
}
each_host_wait = pytest.mark.parametrize("wait", HOST_WAITS.values(), ids=HOST_WAITS)


@each_host_wait
def test_the_host_that_waits_for_the_legacy_stream_has_waited_for_blocking_streams(device, wait):
    array = ready(device)
    write(array, ab.Stream(non_blocking=False))
    wait(ab.legacy_stream())
    write(array, ab.Stream())


@each_host_wait
def test_the_host_that_waits_for_the_legacy_stream_has_not_waited_for_non_blocking_streams(device, wait):
    array = ready(device)
    write(array, ab.Stream())
    wait(ab.legacy_stream())
    assert races((write, array, ab.Stream()))


@each_host_wait
def test_the_host_that_waits_for_a_blocking_stream_has_waited_for_the_legacy_stream_before(device, wait, enqueue):
    array, stream = ready(device), ab.Stream(non_blocking=False)
    write(array, ab.legacy_stream())
    enqueue(stream)
    wait(stream)
    write(array, ab.Stream())


@each_host_wait
def test_order_goes_from_a_blocking_stream_over_the_legacy_one_to_another_and_the_host(device, wait, enqueue):
    (a, b), array = blocking_streams(), ready(device)
    write(array, a)
    enqueue(ab.legacy_stream())
    enqueue(b)
    wait(b)
    write(array, ab.Stream())


def test_a_refused_operation_of_a_blocking_stream_tells_nothing_of_the_legacy_stream(device):
    x, y, stream = ready(device), ready(device), ab.Stream(non_blocking=False)
    write(x, ab.Stream())
    write(y, ab.legacy_stream())
    assert races((write, x, stream))
    stream.synchronize()
    assert races((write, y, ab.Stream()))


def test_a_query_of_the_legacy_stream_tells_of_blocking_streams(device, in_thread):
    array = ready(device)
    write(array, ab.Stream(non_blocking=False))
    in_thread(ab.legacy_stream().synchronize).result(TIMEOUT)
    assert ab.legacy_stream().query()
    write(array, ab.Stream())


def test_a_fill_on_the_legacy_stream_is_no_host_synchronization(device):
    """A memset of CUDA is none, as far as one may rely on."""
    x, y = ready(device), ready(device)
    write(x, ab.Stream(non_blocking=False))
    ab.fill(y, 1, stream=ab.legacy_stream())
    assert races((write, x, ab.Stream()))


def test_a_copy_on_the_legacy_stream_is_in_order_with_blocking_streams_only(device):
    x, y, z = ready(device), ready(device), ready(device)
    write(x, ab.Stream(non_blocking=False))
    ab.copy(y, x, stream=ab.legacy_stream())
    write(x, ab.Stream(non_blocking=False))
    write(z, ab.Stream())
    with pytest.raises(ab.RaceError):
        ab.copy(y, z, stream=ab.legacy_stream())


# Threads and devices


def test_each_thread_has_a_per_thread_stream_of_its_own(device, in_thread):
    array = ready(device)

    def use():
        with ab.hazards("check"):
            return races((write, array, ab.per_thread_stream(device)))

    write(array, ab.per_thread_stream())
    assert in_thread(use).result(TIMEOUT)


def test_the_legacy_stream_orders_the_per_thread_streams_of_two_threads(device, in_thread, enqueue):
    array = ready(device)

    def use():
        with ab.hazards("check"):
            return races((write, array, ab.per_thread_stream(device)))

    write(array, ab.per_thread_stream())
    enqueue(ab.legacy_stream())
    assert not in_thread(use).result(TIMEOUT)


def test_the_per_thread_stream_of_a_thread_that_has_ended_is_covered_by_the_legacy_stream(device, in_thread):
    array = ready(device)
    in_thread(lambda: write(array, ab.per_thread_stream(device))).result(TIMEOUT)
    write(array, ab.legacy_stream())


def test_the_legacy_stream_of_another_device_orders_nothing_here(device, other_device, enqueue):
    (a, b), array = blocking_streams(), ready(device)
    write(array, a)
    enqueue(ab.legacy_stream(other_device))
    assert races((write, array, b))


def test_the_default_stream_is_as_good_as_any_for_a_single_stream(device):
    array = ab.zeros(8)
    for _ in range(3):
        ab.fill(array, 1)
        read(array, ab.default_stream())
