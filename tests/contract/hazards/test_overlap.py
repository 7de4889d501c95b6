"""What an added wait leaves free: work that its source stream got later is none of its business."""

import pytest

import anabranch as ab

from ..accesses import read, write


@pytest.fixture(autouse=True)
def _added(on_device):
    with ab.hazards("auto"):
        yield


def test_an_added_wait_is_not_for_a_stream_that_has_waited_for_the_access(a, b, c, array):
    write(array, a)
    b.wait_stream(a)
    read(array, b)
    with ab.testing.Gate(a):
        write(array, c)  # after the read, and so after the write
        c.synchronize()


@pytest.mark.parametrize("recorded", [False, True])
def test_an_added_wait_or_the_program_s_own_event_is_not_for_what_is_held_behind_the_access(recorded, a, b, array):
    write(array, a)
    event = a.record_event() if recorded else None
    with ab.testing.Gate(a):
        if recorded:
            b.wait_event(event)
        read(array, b)
        b.synchronize()
