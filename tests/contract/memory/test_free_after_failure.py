"""Memory that a failed stream used last is kept until the work before that is complete, which that stream skipped."""

import gc
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..arrays import comes

pytestmark = pytest.mark.usefixtures("failures_forgotten")

SIZE = 1 << 16


def failed_stream(device):
    stream = ab.Stream(device, name="failed")
    ab.testing.fail(stream)
    return stream


def write_skipped(busy, failed, x):
    ab.fill(x, 7, stream=busy)
    ab.fill(x, 8, stream=failed)


def read_skipped(busy, failed, x):
    ab.fill(x, 7, stream=busy)
    ab.copy(ab.empty(SIZE, "uint8", stream=failed), x, stream=failed)


def wait_skipped(busy, failed, x):
    ab.fill(x, 7, stream=busy)
    failed.wait_stream(busy)
    ab.fill(x, 8, stream=failed)


def graph_skipped(busy, failed, x):
    with ab.capture(ab.Stream(x.device)) as graph:
        ab.fill(x, 7)
    graph.launch(busy)
    graph.launch(failed)


def write_after_pending_read(busy, failed, x):
    ab.copy(ab.empty(SIZE, "uint8", stream=busy), x, stream=busy)
    ab.fill(x, 7, stream=busy)
    ab.fill(x, 8, stream=failed)


def check_fresh_arrays(device, busy, gate):
    healthy = ab.Stream(device)
    fresh = [ab.full(SIZE, 99, "uint8", stream=healthy) for _ in range(4)]
    healthy.synchronize()
    gate.open()
    busy.synchronize()
    for array in fresh:
        assert (array.numpy() == 99).all()


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("use", [write_skipped, read_skipped, wait_skipped, graph_skipped, write_after_pending_read])
def test_memory_is_not_used_anew_while_earlier_work_is_pending(device, use, closes):
    for _ in range(5):
        busy, failed = ab.Stream(device, name="busy"), failed_stream(device)
        x = ab.zeros(SIZE, "uint8", stream=busy)
        busy.synchronize()
        gate = ab.testing.Gate(busy)
        use(busy, failed, x)
        if closes:
            x.close()
        del x
        check_fresh_arrays(device, busy, gate)


def test_a_stream_that_fails_after_the_memory_was_freed(device):
    for _ in range(5):
        busy, later = ab.Stream(device, name="busy"), ab.Stream(device, name="later")
        x = ab.zeros(SIZE, "uint8", stream=busy)
        busy.synchronize()
        gate, held = ab.testing.Gate(busy), ab.testing.Gate(later)
        ab.testing.fail(later)
        ab.fill(x, 7, stream=busy)
        ab.fill(x, 8, stream=later)
        del x
        held.open()
        with pytest.raises(ab.KernelError):
            later.synchronize()
        check_fresh_arrays(device, busy, gate)


def test_the_owner_of_imported_memory_is_kept():
    busy, failed = ab.Stream("cpu"), failed_stream("cpu")
    owner, gone = np.zeros(SIZE, "uint8"), threading.Event()
    weakref.finalize(owner, gone.set)
    with ab.testing.Gate(busy):
        x = ab.asarray(owner)
        write_skipped(busy, failed, x)
        del owner, x
        gc.collect()
        assert not gone.is_set()
    busy.synchronize()
    assert comes(gone)
