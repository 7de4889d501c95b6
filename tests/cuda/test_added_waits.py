"""What an added wait gives up on a GPU: it is for all that the source stream has got by then, related or not."""

import time

import pytest

import anabranch as ab

SIZE = 1000
UNRELATED = 100  # milliseconds

pytestmark = pytest.mark.alone


@pytest.fixture
def waited(cuda, delay):
    """A function that tells how long a read of another stream takes, in ms, that the access is followed by a kernel."""

    def run(order):
        a, b = ab.Stream(cuda), ab.Stream(cuda)
        array, result = ab.zeros(SIZE, stream=a), ab.zeros(SIZE, stream=b)
        ab.synchronize()
        ab.fill(array, 1, stream=a)
        ordered = order(a, b)
        delay(a, UNRELATED)
        began = time.monotonic()
        ordered()
        ab.copy(result, array, stream=b)
        b.synchronize()
        return (time.monotonic() - began) * 1000

    return run


def test_unrelated_work_enqueued_after_the_access_is_waited_for_too(waited):
    assert waited(lambda a, b: lambda: None) > UNRELATED * 0.8


def test_an_event_recorded_after_the_access_keeps_the_overlap(waited):
    def order(a, b):
        event = a.record_event()
        return lambda: b.wait_event(event)

    assert waited(order) < UNRELATED * 0.5


def test_what_is_used_at_once_keeps_the_overlap(cuda, delay):
    a, b = ab.Stream(cuda), ab.Stream(cuda)
    array, result = ab.zeros(SIZE, stream=a), ab.zeros(SIZE, stream=b)
    ab.synchronize()
    ab.fill(array, 1, stream=a)
    ab.copy(result, array, stream=b)
    delay(a, UNRELATED)
    began = time.monotonic()
    b.synchronize()
    assert (time.monotonic() - began) * 1000 < UNRELATED * 0.5
