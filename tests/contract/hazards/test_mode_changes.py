"""From one mode to the next: what was done under one as the other sees it."""

import pytest

import anabranch as ab

from ..accesses import read, write
from ..arrays import TIMEOUT, held

pytestmark = pytest.mark.races


def test_what_was_enqueued_under_off_is_never_reported(a, b, array):
    with ab.testing.Gate(a):
        with ab.hazards("off"):
            write(array, a)
        with ab.hazards("check"):
            write(array, b)


def test_what_was_enqueued_under_off_is_waited_for_under_auto(in_thread, a, b, array):
    with ab.testing.Gate(a):
        with ab.hazards("off"):
            write(array, a)
        with ab.hazards("auto"):
            write(array, b)
        waiting = in_thread(b.synchronize)
        assert held(waiting)
    waiting.result(TIMEOUT)


def test_what_auto_has_ordered_is_in_order_under_check(a, b, c, array):
    with ab.hazards("auto"):
        write(array, a)
        read(array, b)
    c.wait_stream(b)
    with ab.hazards("check"):
        write(array, c)


ORDERS = {
    "stream": lambda before, after: after.wait_stream(before),
    "event": lambda before, after: after.wait_event(before.record_event()),
    "synchronize": lambda before, after: before.synchronize(),
    "event.synchronize": lambda before, after: before.record_event().synchronize(),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_order_made_under_off_is_known_to_check(order, a, b, array):
    with ab.hazards("check"):
        write(array, a)
        with ab.hazards("off"):
            order(a, b)
        write(array, b)
