"""Arrays that are closed while a call that was given them is under way: it is done with them, or raises ClosedError."""

import asyncio
import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready, streams
from ..arrays import TIMEOUT, values


class Closing:
    """An allocator that closes arrays when it is asked for memory."""

    def __init__(self, *arrays):
        self.arrays, self.blocks = arrays, {}

    def allocate(self, nbytes, stream):
        for array in self.arrays:
            array.close()
        block = ab.empty(nbytes, "uint8", device="cpu", pinned=True)
        self.blocks[block.ptr] = block
        return block.ptr

    def deallocate(self, pointer, nbytes, stream):
        del self.blocks[pointer]


@pytest.fixture
def closing(device):
    """Have a device's allocator close arrays."""
    if device.kind == "cuda":
        pytest.skip("its memory would have to be the GPU's")

    def use(*arrays):
        ab.set_allocator(Closing(*arrays), device)

    yield use
    ab.set_allocator(None, device)
    gc.collect()


@pytest.mark.thread_unsafe(reason="the allocator is the device's")
def test_a_copy_of_arrays_that_overlap_is_done_with_both(device, closing):
    array = ab.array(values(9), device=device)
    one, other = array[:-1], array[1:]
    closing(one, other)
    ab.copy(one, other)
    assert one.closed
    np.testing.assert_array_equal(array.numpy()[:-1], values(9)[1:])


@pytest.mark.thread_unsafe(reason="the allocator is the device's")
def test_an_array_is_made_of_another_that_is_closed_meanwhile(device, closing):
    array = ab.array(values(8), device=device)
    closing(array)
    np.testing.assert_array_equal(ab.array(array).numpy(), values(8))
    assert array.closed


@pytest.mark.races
@pytest.mark.thread_unsafe(reason="whether functions are profiled is the process's")
@pytest.mark.parametrize("keep", [False, True])
def test_an_array_closed_while_its_race_is_reported_is_not_used(device, keep, in_thread, array):
    view = array[:] if keep else None
    a, b = streams(device)

    def close(frame, event, arg):
        # What the collector of garbage calls is code in Python, too.
        if frame.f_globals.get("__name__", "").startswith("anabranch._races"):
            sys.setprofile(None)
            array.close()

    def fill():
        sys.setprofile(close)
        ab.fill(array, 2, stream=b)

    with ab.collect_races() as races:
        ab.fill(array, 1, stream=a)
        in_thread(a.synchronize).result(TIMEOUT)  # what comes last is certain, but not to this thread
        if keep:
            fill()
            np.testing.assert_array_equal(view.numpy(), 2)
        else:
            with pytest.raises(ab.ClosedError):
                fill()
    assert array.closed
    assert len(races) == 1


def test_what_a_function_is_said_to_access_may_be_closed_by_what_says_it(device):
    arrays = [ready(device) for _ in range(3)]

    def say():
        for array in arrays:
            yield array
            array.close()

    a, b = streams(device)
    with ab.testing.Gate(a):
        a.submit(int, writes=say())
        # Memory that is made now is none that the function holds.
        ab.fill(ab.empty(8, device=device, stream=b), 1, stream=b)
        assert b.submit(int).result(10) == 0
    assert all(array.closed for array in arrays)
    a.synchronize()


class Holder:
    """Garbage that closes an array when it is collected."""

    def __init__(self, array):
        self.array, self.itself = array, self

    def __del__(self):
        self.array.close()


@pytest.fixture
def threshold():
    """Set how many objects are made from one collection to the next."""
    before = gc.get_threshold()
    yield gc.set_threshold
    gc.set_threshold(*before)


@pytest.mark.thread_unsafe(reason="the collector's threshold is the process's")
def test_a_finalizer_may_close_an_array_that_a_view_is_made_of(device, threshold):
    threshold(1)
    for _ in range(50):
        array = ab.zeros(8, device=device)
        Holder(array)
        try:
            kept = [array[1:] for _ in range(20)]
            assert all(view.shape == (7,) for view in kept)
        except ab.ClosedError:
            assert array.closed


@pytest.mark.thread_unsafe(reason="the collector's threshold is the process's")
def test_a_finalizer_may_close_an_array_that_is_copied_to_the_host(device, threshold):
    async def copied(objects):
        array = ab.full(1000, 3, "float32", device=device)
        gc.collect()
        Holder(array)
        threshold(objects)
        try:
            coming = ab.to_host(array)
        except ab.ClosedError:
            assert array.closed
            return
        finally:
            threshold(0)
        others = [ab.full(1000, -1, "float32", device=device) for _ in range(3)]
        np.testing.assert_array_equal(await coming, np.full(1000, 3))
        assert all((other.numpy() == -1).all() for other in others)

    for objects in range(1, 30):
        asyncio.run(copied(objects))


# GPUs


@pytest.fixture
def gpu(device):
    if device.kind != "cuda":
        pytest.skip("nobody waits in these calls where memory is the host's")
    return device


@pytest.mark.parametrize("call", ["up", "down", "array", "dlpack", "interface"])
def test_an_array_closed_while_a_call_waits_is_used_to_the_end(gpu, in_thread, call):
    stream, other = streams(gpu)
    array, host = ab.array(values(8), device=gpu), ab.array(values(8)[::-1], device="cpu")
    gate = ab.testing.Gate(stream)
    ab.fill(array, 7, stream=stream)
    calls = {
        "up": lambda: ab.copy(array, host, stream=stream),
        "down": lambda: ab.copy(host, array, stream=stream),
        "array": lambda: ab.array(array, device=gpu, stream=other),
        "dlpack": lambda: array.__dlpack__(stream=other.handle),
        "interface": lambda: array.__cuda_array_interface__,
    }
    done = in_thread(calls[call])
    with pytest.raises(TimeoutError):
        done.exception(0.05)
    array.close()
    host.close()
    gate.open()
    assert done.exception(10) is None
    gc.collect()
    ab.synchronize(gpu)


@pytest.mark.parametrize("wrong", [{"strides": (4,)}, {"data": (1,)}, {"data": ()}, {"strides": (4, 4, 4)}], ids=str)
def test_an_interface_with_too_little_in_it_is_an_error(gpu, wrong):
    interface = ab.zeros((2, 2), device=gpu).__cuda_array_interface__ | wrong
    with pytest.raises(ValueError, match=r"strides|unpack"):
        ab.asarray(SimpleNamespace(__cuda_array_interface__=interface))
