"""The default streams' order as the hazards see it, under `check`: what CuSan knows of CUDA's implicit synchronization.

The legacy stream is in order with the blocking streams of its device and with no others.
"""

import pytest

import anabranch as ab

from ..accesses import each_pair, read, write
from ..arrays import TIMEOUT
from ..programs import Program, each_program

pytestmark = [
    pytest.mark.unseen_order,
    pytest.mark.thread_unsafe(reason="the legacy stream is in order with the blocking streams of all threads"),
]


@pytest.fixture(autouse=True)
def _checked(on_device):
    # What earlier tests left on the default streams is over, and known to be.
    ab.synchronize()
    with ab.hazards("check"):
        yield


@each_pair
@pytest.mark.parametrize("blocking", ["blocking", "thread"])
def test_the_legacy_stream_is_in_order_with_blocking_streams(device, blocking, kind, first, second):
    Program(device).run(f"{blocking} {first}s x, legacy {second}s x")
    Program(device).run(f"legacy {first}s x, {blocking} {second}s x")


@each_pair
def test_the_legacy_stream_has_no_order_with_non_blocking_streams(device, kind, first, second):
    Program(device).run(f"a {first}s x, legacy {second}s x !{kind} a")
    Program(device).run(f"legacy {first}s x, a {second}s x !{kind} legacy")


PROGRAMS = {
    "blocking streams have no order with each other": "blocking writes x, blocking2 writes x !",
    "nor with the per-thread stream": "blocking writes x, thread writes x !",
    "an event of the legacy stream covers blocking streams": "blocking writes x, legacy marks e, b after e, b writes x",
    "a blocking stream closed meanwhile is covered too": "blocking writes x, blocking closes, legacy writes x",
    "non-blocking streams may wait for the legacy stream": (
        "legacy writes x, a after legacy, a writes x, legacy after a, legacy writes x"
    ),
    "a refused operation of a blocking stream tells nothing of the legacy stream": (
        "a writes x, legacy writes y, blocking writes x !, host after blocking, b writes y !"
    ),
    "a query of the legacy stream tells of blocking streams": (
        "blocking writes x, legacy completes, host asks legacy, a writes x"
    ),
    # A memset of CUDA is none, as far as one may rely on.
    "a fill on the legacy stream is no host synchronization": "blocking writes x, legacy writes y, a writes x !",
}
# What `works` does is each operation in turn.
WORK = {
    "work on the legacy stream orders blocking streams": "blocking writes x, legacy works, blocking2 writes x",
    "work on it before both orders neither": "legacy works, blocking writes x, blocking2 writes x !",
    "work on a third does not make it do anything": "blocking writes x, blocking3 works, blocking2 writes x !",
    "it orders no non-blocking streams": "a writes x, legacy works, b writes x !",
    "one of two streams that does not block is enough for a race": (
        "blocking writes x, a writes y, legacy works, a writes x !, blocking writes y !"
    ),
    "order goes on from the legacy stream to blocking streams": (
        "a writes x, legacy after a, legacy works, blocking writes x"
    ),
}
# How the host waits is each way in turn.
HOST = {
    "who waits for the legacy stream has waited for blocking ones": "blocking writes x, host after legacy, a writes x",
    "but not for non-blocking ones": "a writes x, host after legacy, b writes x !",
    "who waits for a blocking stream has waited for the legacy stream before": (
        "legacy writes x, blocking works, host after blocking, a writes x"
    ),
    "order goes from a blocking stream over the legacy one to another and the host": (
        "blocking writes x, legacy works, blocking2 works, host after blocking2, a writes x"
    ),
}
HOST_WAITS = {
    "synchronize": lambda stream: stream.synchronize(),
    "event": lambda stream: stream.record_event().synchronize(),
    "future": lambda stream: stream.submit(int).result(TIMEOUT),
}


@each_program(PROGRAMS)
def test_a_program_races_where_it_says(device, program):
    Program(device).run(program)


@each_program(WORK)
def test_work_orders_what_it_says(device, enqueue, program):
    Program(device, work=enqueue).run(program)


@each_program(HOST)
@pytest.mark.parametrize("wait", HOST_WAITS.values(), ids=HOST_WAITS)
def test_waits_of_the_host_order_what_they_say(device, wait, enqueue, program):
    Program(device, work=enqueue, wait=wait).run(program)


def test_a_copy_on_the_legacy_stream_is_in_order_with_blocking_streams_only(x, y, z):
    write(x, ab.Stream(non_blocking=False))
    ab.copy(y, x, stream=ab.legacy_stream())
    write(x, ab.Stream(non_blocking=False))
    write(z, ab.Stream())
    with pytest.raises(ab.RaceError):
        ab.copy(y, z, stream=ab.legacy_stream())


# Threads and devices


def test_each_thread_has_a_per_thread_stream_of_its_own_which_the_legacy_stream_orders(device, in_thread, enqueue):
    program = Program(device, work=enqueue)

    def elsewhere(steps):
        with ab.hazards("check"):
            program.run(steps)

    program.run("thread writes x")
    in_thread(elsewhere, "thread writes x !").result(TIMEOUT)
    program.run("legacy works")
    in_thread(elsewhere, "thread writes x").result(TIMEOUT)
    program.run("legacy writes x")  # also when that thread has ended


def test_the_legacy_stream_of_another_device_orders_nothing_here(device, other_device, enqueue):
    program = Program(device)
    program.run("blocking writes x")
    enqueue(ab.legacy_stream(other_device))
    program.run("blocking2 writes x !")


def test_the_default_stream_is_as_good_as_any_for_a_single_stream(device):
    array = ab.zeros(8)
    for _ in range(3):
        ab.fill(array, 1)
        read(array, ab.default_stream())
