"""What other libraries do to arrays in a bridge: seen at its end, and by whoever looks for order meanwhile.

Nobody tells us when a library puts work into the stream, so nothing here does.
"""

import gc
import sys
import threading
import weakref

import pytest

import anabranch as ab

from ..accesses import ready, write
from ..arrays import comes
from .libraries import MAKE

pytestmark = [pytest.mark.races, pytest.mark.thread_unsafe(reason="stand-ins for libraries are of all threads")]


@pytest.fixture
def device(device, monkeypatch):
    """A GPU: the libraries' work on a CPU is done when they return."""
    if device.kind == "cpu":
        pytest.skip("the libraries have streams on a GPU only")
    module, make = MAKE["torch"]
    monkeypatch.setitem(sys.modules, module, make())
    return device


class Tensor:
    """Memory of theirs, which they hand out by either protocol."""

    def __init__(self, device, protocol):
        self._array = ready(device)
        if protocol == "dlpack":
            self.__dlpack_device__ = self._array.__dlpack_device__
            self.__dlpack__ = self._array.__dlpack__
        else:
            self.__cuda_array_interface__ = self._array.__cuda_array_interface__ | {"stream": None}


def give(array, stream, protocol):
    """Hand an array of ours to the library; gives what keeps it."""
    if protocol == "dlpack":
        return array.__dlpack__(stream=stream.handle, max_version=(1, 0))
    return array.__cuda_array_interface__


def shared(device, stream, way):
    """Let both sides have an array in an open bridge: the array, and what the library keeps."""
    side, protocol = way.split(" by ")
    if side == "given":
        array = ready(device)
        return array, give(array, stream, protocol)
    tensor = Tensor(device, protocol)
    return ab.asarray(tensor), tensor


WAYS = ["given by dlpack", "given by interface", "taken by interface"]
each_way = pytest.mark.parametrize("way", WAYS)


def added(stream, access):
    """Tell how many waits an access of a stream has added."""
    with ab.trace() as trace:
        access()
    return [operation.stream for operation in trace.operations if operation.kind == "wait" and operation.added].count(
        stream
    )


@each_way
def test_the_end_of_a_bridge_is_an_access(device, way, a, b):
    with ab.hazards("check"):
        with a.bridge("torch"):
            array, _kept = shared(device, a, way)
            b.wait_stream(a)
            write(array, b)  # comes after the hand-over, and what the library may have done since is its business
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
        assert caught.value.first.stream == a
        assert caught.value.first.file == __file__
        b.wait_stream(a)
        write(array, b)


@each_way
def test_work_after_a_bridge_waits_for_it(device, way, a, b):
    with a.bridge("torch"):
        array, _kept = shared(device, a, way)
        b.wait_stream(a)
    assert added(b, lambda: write(array, b)) == 1
    assert added(b, lambda: write(array, b)) == 0


@each_way
def test_work_in_a_bridge_waits_for_what_the_library_has_put_in_by_then(device, way, a, b):
    with a.bridge("torch"):
        array, _kept = shared(device, a, way)
        for _ in range(2):
            b.wait_stream(a)
            b.synchronize()
            assert added(b, lambda: write(array, b)) == 1
        # In its own stream it is in order.
        a.wait_stream(b)
        assert added(a, lambda: write(array, a)) == 0


def test_only_what_was_handed_over_counts(device, a, b):
    other, array = ready(device), ready(device)
    with ab.hazards("check"):
        with a.bridge("torch"):
            _kept = give(array[:4], a, "interface")
            b.wait_stream(a)
        write(other, b)
        write(array[4:], b)
        with pytest.raises(ab.RaceError):
            write(array[:4], b)


def test_what_was_handed_over_outside_counts_once(a, b, array):
    _kept = give(array, a, "dlpack")
    with a.bridge("torch"):
        b.wait_stream(a)
    assert added(b, lambda: write(array, b)) == 0


def test_memory_handed_to_another_stream_is_that_one_s(device):
    a, b, c = (ab.Stream(device) for _ in range(3))
    array = ready(device)
    with a.bridge("torch"):
        _kept = give(array, c, "dlpack")
        b.wait_stream(c)
    assert added(b, lambda: write(array, b)) == 0


def test_bridges_within_each_other_both_end_with_an_access(device, a, b):
    with a.bridge("torch"):
        with a.bridge("torch"):
            array, _kept = shared(device, a, "given by interface")
        b.wait_stream(a)
        assert added(b, lambda: write(array, b)) == 1
        b.wait_stream(a)
    assert added(b, lambda: write(array, b)) == 1
    assert added(b, lambda: write(array, b)) == 0


def test_a_bridge_that_was_left_knows_nothing_of_the_next(device, a, b):
    with a.bridge("torch"):
        array, _kept = shared(device, a, "given by interface")
    b.wait_stream(a)
    with a.bridge("torch"):
        pass
    assert added(b, lambda: write(array, b)) == 0


def test_under_off_the_use_is_noted_for_the_free(device, a):
    with ab.hazards("off"), a.bridge("torch"):
        array, kept = shared(device, a, "given by interface")
        del kept
    array.close()
    ab.synchronize(device)


def test_memory_that_goes_in_the_block_is_not_kept(device):
    a = ab.Stream(device)
    with a.bridge("torch"):
        tensor, gone = Tensor(device, "interface"), threading.Event()
        weakref.finalize(tensor, gone.set)
        array = ab.asarray(tensor)
        del tensor, array
        gc.collect()
        a.synchronize()
        assert comes(gone)
        for _ in range(1000):
            give(ab.empty(1 << 20, stream=a), a, "interface")


def test_many_parts_of_one_array_may_be_handed_over(device, a, b):
    array = ready(device, 100)
    with a.bridge("torch"):
        for number in range(50):
            give(array[2 * number : 2 * number + 1], a, "interface")
        b.wait_stream(a)
    assert added(b, lambda: write(array, b)) == 1


def test_several_threads_hand_arrays_over(device, in_threads):
    array, streams = ready(device, 64), [ab.Stream(device) for _ in range(4)]

    def body(number):
        with ab.Device(device.alias):
            for _ in range(50):
                with streams[number].bridge("torch"):
                    give(array[16 * number : 16 * number + 16], streams[number], "interface")
                    give(ready(device), streams[number], "interface")
        return True

    assert all(in_threads(4, body))
    b = ab.Stream(device)
    write(array, b)
    b.synchronize()
