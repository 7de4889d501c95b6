"""`ab.trace`: when operations ran, and what is made of it."""

import json
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

import anabranch as ab

from ..accesses import read, ready, write
from ..arrays import TIMEOUT, held

pytestmark = [
    pytest.mark.thread_unsafe(reason="a trace has what all threads do"),
    pytest.mark.usefixtures("nothing_left"),
]


@ab.kernel
def look_up(i, target: ab.Out):
    table = (1.0, 2.0)
    target[i] = table[i]


def only(trace, kind):
    """Return the operation of a kind, of which there is one."""
    (operation,) = (operation for operation in trace.operations if operation.kind == kind)
    return operation


def test_operations_of_a_stream_come_one_after_the_other(device):
    stream, array = ab.Stream(device), ab.zeros(1 << 16, device=device)
    with ab.trace() as trace:
        for value in range(10):
            ab.fill(array, value, stream=stream)
    operations = trace.operations
    assert all(operation.begin <= operation.end for operation in operations)
    # A GPU's clock tells halves of a microsecond.
    assert all(a.end <= b.begin + 0.001 for a, b in pairwise(operations))


def test_what_is_held_begins_when_it_is_let_go(stream, array):
    with ab.trace() as trace:
        began = time.monotonic()
        with ab.testing.Gate(stream):
            ab.fill(array, 1, stream=stream)
            time.sleep(0.05)
            opened = time.monotonic()
    fill = only(trace, "fill")
    # The clock of a GPU is compared with the host's as closely as others who use the GPU allow: then to milliseconds.
    assert fill.begin >= (opened - began) * 1000 / 2


def test_a_wait_lasts_from_when_the_stream_comes_to_it_until_it_may_go_on(a, b, array):
    with ab.trace() as trace:
        with ab.testing.Gate(a):
            write(array, a)
            b.wait_stream(a)
            time.sleep(0.05)
        read(array, b)
    fill, wait = only(trace, "fill"), only(trace, "wait")
    assert wait.end >= fill.end - 0.001
    # Streams of a GPU are each measured against a clock that is compared with the host's anew now and then.
    assert only(trace, "copy").begin >= wait.end - 0.05


def test_a_host_function_lasts_as_long_as_it_takes(stream):
    with ab.trace() as trace:
        stream.submit(time.sleep, 0.02).result(TIMEOUT)
    operation = only(trace, "host")
    assert operation.end - operation.begin >= 19
    assert operation.name == "sleep"


def test_times_are_milliseconds_since_the_trace_began(stream, array):
    write(array, stream)
    began = time.perf_counter()
    with ab.trace() as trace:
        write(array, stream)
        stream.synchronize()
    operation = only(trace, "fill")
    assert -0.1 <= operation.begin <= operation.end <= (time.perf_counter() - began) * 1000 + 0.1


def test_looking_at_the_operations_waits_for_them(in_thread, stream, array):
    with ab.testing.Gate(stream):
        with ab.trace() as trace:
            write(array, stream)
        assert repr(trace) == "<trace of 1 operations>"
        looking = in_thread(lambda: trace.operations)
        assert held(looking)
    assert [operation.kind for operation in looking.result(TIMEOUT)] == ["fill"]


def test_work_that_failed_is_told(device, failures_forgotten):
    stream, array = ab.Stream(device), ready(device)
    with ab.trace() as trace:
        write(array, stream)
        ab.testing.fail(stream)
        write(array, stream)
    first, second = (operation for operation in trace.operations if operation.kind == "fill")
    assert first.begin <= first.end <= second.begin <= second.end


def test_work_that_failed_or_was_skipped_is_marked(a, b, array, tmp_path, failures_forgotten):
    with ab.trace() as trace:
        write(array, a)
        ab.testing.fail(a)
        write(array, a)
        b.wait_stream(a)
        read(array, b)
        ab.fill(ab.empty(4, device=array.device, stream=b), 1, stream=b)
    seen = [operation for operation in trace.operations if operation.kind in ("fill", "wait", "copy")]
    before, after, *_ = (operation for operation in seen if operation.stream == a)
    assert (before.failed, before.skipped) == (False, False)
    assert (after.failed, after.skipped) == (False, True)
    wait, *rest = (operation for operation in seen if operation.stream == b)
    assert (wait.kind, wait.failed, wait.skipped) == ("wait", True, False)
    assert rest
    assert all(operation.skipped for operation in rest)
    trace.save(tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    skipped = [event["cat"] for event in told if event.get("args", {}).get("skipped")]
    # By the time at which each was over, which on two streams is in any order.
    assert sorted(skipped) == sorted(["fill", *(operation.kind for operation in rest)])


@pytest.mark.numba
def test_looking_at_a_trace_raises_no_failure_and_hides_none(device, failures_forgotten):
    array = ready(device)
    with ab.trace() as trace:
        stream = ab.Stream(device)
        ab.launch(look_up, 4, array, stream=stream)
    del stream
    [kernel] = (operation for operation in trace.operations if operation.kind == "kernel")
    assert (kernel.failed, kernel.skipped) == (True, False)
    del trace, kernel
    with pytest.raises(ab.KernelError) as raised:
        ab.synchronize()
    assert not hasattr(raised.value, "__notes__")


# What is made of it


def test_streams_that_work_at_the_same_time_overlap(device, a, b):
    meeting = threading.Barrier(2)
    with ab.trace() as trace:
        futures = [stream.submit(meeting.wait, TIMEOUT) for stream in (a, b)]
        for future in futures:
            future.result(TIMEOUT)
    share = trace.overlap()[device]
    assert 0 < share <= 1
    assert trace.overlap()[device.alias] == share


def test_one_stream_overlaps_with_nothing(device, stream, array):
    with ab.trace() as trace:
        write(array, stream)
        write(array, stream)
    assert trace.overlap() == {device: 0.0}
    with pytest.raises(KeyError):
        trace.overlap()["no device"]


def test_a_trace_of_much_keeps_up(device):
    stream, array = ab.Stream(device), ready(device, 4)
    with ab.trace() as trace:
        for value in range(5000):
            ab.fill(array, value % 100, stream=stream)
    assert len(trace.operations) == 5000
    np.testing.assert_array_equal(array.numpy(), np.full(4, 99))
