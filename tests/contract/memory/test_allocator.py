"""`set_allocator`: memory from an allocator of somebody else's, which gets it back once it may be used again."""

import ctypes
import gc
import mmap
import sys
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..arrays import TIMEOUT, comes

# Of a GPU the arrays are parts of one that was made in another stream's order, after which the host has waited:
# memcheck does not take that for an order.
pytestmark = [
    pytest.mark.unseen_order,
    pytest.mark.thread_unsafe(reason="an allocator is of a device, for all threads"),
]

# What arrays hold: below 4 KiB, and more.
SIZES = [1, 3, 1000, 1 << 20]


class Flag:
    """An event without a lock: on free-threaded Python a finalizer may be called within another one's `set`."""

    def __init__(self):
        self._up = False

    def set(self):
        self._up = True

    def is_set(self):
        return self._up

    def wait(self, timeout):
        threading.Event().wait(timeout)
        return self._up


class Counting:
    """An allocator that knows what is out. Of a GPU it hands out parts of one array, each byte once."""

    def __init__(self, device):
        self.device, self.out, self.given_back, self.streams = device, {}, [], []
        self.returned = Flag()
        self.failure = None
        if device.kind == "cuda":
            self.arena = ab.zeros(1 << 23, "uint8", device=device)
            ab.synchronize(device)
            self.addresses = iter(range(self.arena.ptr, self.arena.ptr + self.arena.nbytes, 1 << 12))

    def allocate(self, nbytes, stream):
        if self.failure is not None:
            raise self.failure
        self.streams.append(stream)
        assert nbytes > 0
        if self.device.kind == "cpu":
            block = mmap.mmap(-1, nbytes)
            pointer = ctypes.addressof(ctypes.c_char.from_buffer(block))
        else:
            block, pointer = None, next(self.addresses)
            for _ in range((nbytes - 1) >> 12):
                next(self.addresses)
        self.out[pointer] = block, nbytes, stream
        return pointer

    def deallocate(self, pointer, nbytes, stream):
        _, size, allocated_for = self.out.pop(pointer)
        self.given_back.append((nbytes, threading.current_thread()))
        assert size == nbytes
        assert allocated_for is stream
        self.returned.set()
        if self.failure is not None:
            raise self.failure

    def is_empty(self):
        pause = threading.Event()
        return any(not self.out or pause.wait(0.01) for _ in range(int(TIMEOUT / 0.01)))


@pytest.fixture
def allocator(device):
    made = Counting(device)
    ab.set_allocator(made, device)
    yield made
    ab.set_allocator(None, device)
    gc.collect()


@pytest.mark.parametrize("size", SIZES)
def test_arrays_are_made_of_its_memory(allocator, size, stream):
    array = ab.full(size, 7, "uint8", stream=stream)
    assert array.ptr in allocator.out
    assert allocator.out[array.ptr][1] >= size
    assert allocator.out[array.ptr][2] == stream
    np.testing.assert_array_equal(array.numpy(), 7)
    copy = ab.array(array, stream=stream)
    assert copy.ptr in allocator.out
    np.testing.assert_array_equal(copy.numpy(), 7)
    array.close()
    del copy
    assert allocator.is_empty()


def test_the_host_s_data_goes_there_too(device, allocator):
    with ab.testing.Gate(ab.current_stream(device)):
        array = ab.array(np.arange(1000), device=device)
        assert array.ptr in allocator.out
        np.testing.assert_array_equal(array.numpy(), np.arange(1000))


def test_it_is_the_device_s_alone_and_until_it_is_replaced(device_pair):
    device, other = device_pair
    allocator, second = Counting(device), Counting(device)
    ab.set_allocator(allocator, device)
    try:
        assert ab.zeros(4, device=other).ptr not in allocator.out
        first = ab.zeros(4, device=device)
        ab.set_allocator(second, device)
        array = ab.zeros(4, device=device)
        assert first.ptr in allocator.out
        assert array.ptr in second.out
    finally:
        ab.set_allocator(None, device)
    assert ab.zeros(4, device=device).ptr not in (*allocator.out, *second.out)
    del first, array
    assert allocator.is_empty()
    assert second.is_empty()
    known = weakref.ref(second)
    del second
    pause = threading.Event()
    assert any(known() is None or pause.wait(0.01) for _ in range(int(TIMEOUT / 0.01)))


def test_no_memory_is_asked_for_no_elements_nor_for_pinned_ones(device, allocator):
    ab.zeros(0, device=device)
    if device.kind == "cpu":
        ab.zeros(4, device=device, pinned=True)
    assert not allocator.streams


def test_a_capture_s_memory_is_the_graph_s(allocator, stream):
    with ab.capture(stream) as graph:
        ab.fill(ab.empty(4), 1)
    graph.launch(stream)
    stream.synchronize()
    assert not allocator.streams


def test_a_view_keeps_the_memory(device, allocator):
    view = ab.full(10, 3, device=device)[2:5]
    gc.collect()
    np.testing.assert_array_equal(view.numpy(), 3)
    assert allocator.out
    del view
    assert allocator.is_empty()


# When it goes back


def test_it_goes_back_after_every_stream_that_used_it(allocator, a, b):
    array, target = ab.zeros(1000, stream=a), ab.zeros(1000, stream=a)
    b.wait_stream(a)
    with ab.testing.Gate(b):
        ab.copy(target, array, stream=b)
        array.close()
        assert not allocator.given_back
        assert not allocator.returned.wait(0.02)
    assert comes(allocator.returned)
    a.synchronize()


def test_it_does_not_go_back_before_what_its_stream_holds(allocator, a):
    with ab.testing.Gate(a):
        array = ab.zeros(1000, stream=a)
        array.close()
        assert not allocator.returned.wait(0.02)
    assert comes(allocator.returned)


def test_on_a_gpu_it_goes_back_at_once_in_the_order_of_its_stream(device, allocator):
    if device.kind == "cpu":
        pytest.skip("memory of the host goes back once nobody uses it")
    array = ab.zeros(1000, stream=ab.Stream(device))
    array.close()
    assert allocator.given_back[0][1] is threading.current_thread()


def test_another_stream_comes_after_the_allocation(device, allocator, a, b):
    with ab.testing.Gate(a), ab.hazards("check"):
        array = ab.empty(1000, stream=a)
        ab.fill(array, 3, stream=b)  # how memory came to its stream is nobody's race
        assert device.kind == "cpu" or not b.query()
    np.testing.assert_array_equal(array.numpy(), 3)


def test_the_last_reference_may_go_on_any_thread(device, allocator, in_threads):
    arrays = [ab.full(1000, number, "int32", device=device) for number in range(8)]

    def drop(number):
        total = int(arrays[number].numpy().sum())
        arrays[number] = None
        for _ in range(20):
            ab.full(100, 1, stream=ab.Stream(device))
        return total

    assert in_threads(8, drop) == [1000 * number for number in range(8)]
    assert allocator.is_empty()


def test_the_last_reference_may_go_in_a_host_function(device, allocator):
    stream, kept = ab.Stream(device), [ab.zeros(1000, device=device)]
    stream.submit(kept.clear).result(TIMEOUT)
    assert allocator.is_empty()


def test_a_stream_that_was_closed_is_no_obstacle(device, allocator):
    stream = ab.Stream(device)
    array = ab.full(4, 3, stream=stream)
    stream.close()
    np.testing.assert_array_equal(array.numpy(), 3)
    del array
    assert allocator.is_empty()


def test_the_per_thread_stream_of_another_thread_has_memory_too(device, allocator, in_thread):
    array = in_thread(lambda: ab.full(4, 3, stream=ab.per_thread_stream(device))).result(TIMEOUT)
    np.testing.assert_array_equal(array.numpy(), 3)
    del array
    assert allocator.is_empty()


# Errors


@pytest.mark.parametrize("error", [MemoryError("none"), type("OutOfMemoryError", (RuntimeError,), {})("none")])
def test_memory_that_it_lacks_is_the_cause_of_our_error(device, allocator, error):
    allocator.failure = error
    with pytest.raises(ab.OutOfMemoryError, match=device.alias) as caught:
        ab.zeros(1000, device=device)
    assert caught.value.__cause__ is error
    allocator.failure = None
    assert ab.zeros(4, device=device).ptr in allocator.out


def test_other_errors_are_the_caller_s(device, allocator):
    allocator.failure = LookupError("what")
    with pytest.raises(LookupError, match="what"):
        ab.zeros(1000, device=device)
    allocator.failure = None


@pytest.mark.parametrize(
    ("address", "error"), [(None, TypeError), ("1", TypeError), (True, TypeError), (0, ab.OutOfMemoryError)]
)
def test_what_is_no_address_is_refused(device, allocator, address, error):
    allocator.allocate = lambda nbytes, stream: address
    with pytest.raises(error):
        ab.zeros(4, device=device)


def test_memory_that_is_not_aligned_is_given_back(device, allocator):
    given = []
    allocator.allocate = lambda nbytes, stream: 1 << 20 | 8
    allocator.deallocate = lambda *arguments: given.append(arguments[0])
    with pytest.raises(ValueError, match="16 bytes"):
        ab.zeros(4, device=device)
    gc.collect()
    assert given == [1 << 20 | 8]


def test_errors_in_giving_back_are_told_and_raised_nowhere(device, allocator, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))
    array = ab.zeros(4, device=device)
    ab.synchronize(device)
    allocator.failure = LookupError()
    array.close()
    assert comes(allocator.returned)
    pause = threading.Event()
    assert any(told or pause.wait(0.01) for _ in range(1000))
    assert told == [LookupError]
    allocator.failure = None


# At once, by a thread of ours, and because the memory was of no use.
LAST = {
    "at once": "ab.zeros(4).close()",
    "later": """
        stream = ab.Stream()
        with ab.testing.Gate(stream):
            ab.zeros(4, stream=stream).close()
        """,
    "not aligned": """
        skew = 8
        try:
            ab.zeros(4)
        except ValueError:
            pass
        """,
}


@pytest.mark.parametrize("last", LAST.values(), ids=LAST)
def test_giving_back_does_not_end_the_process(run_python, device, last):
    if device.kind == "cuda":
        pytest.skip("the memory is the host's")
    script = f"""
        import ctypes
        import sys
        import threading
        import anabranch as ab

        class Memory:
            def allocate(self, nbytes, stream):
                self.kept = ctypes.create_string_buffer(nbytes + 32)
                address = ctypes.addressof(self.kept)
                return address + -address % 16 + skew

            def deallocate(self, *_):
                raise SystemExit(3)

        def told(unraisable):
            print(repr(unraisable.exc_value))
            heard.set()

        sys.unraisablehook = told
        skew, heard, memory = 0, threading.Event(), Memory()
        ab.Device({device.alias!r}).__enter__()
        ab.set_allocator(memory)
        {last.strip()}
        assert heard.wait({TIMEOUT})
        print("goes on")
        """
    assert run_python(script) == "SystemExit(3)\ngoes on\n"


@pytest.mark.parametrize("lacking", ["allocate", "deallocate"])
def test_what_is_no_allocator_is_refused(device, lacking):
    class Half:
        pass

    setattr(Half, {"allocate": "deallocate", "deallocate": "allocate"}[lacking], lambda *_: None)
    with pytest.raises(TypeError, match=lacking):
        ab.set_allocator(Half(), device)
    with pytest.raises(ValueError, match="'jax'"):
        ab.set_allocator("jax", device)
    if device.kind == "cpu":
        with pytest.raises(ValueError, match=device.alias):
            ab.set_allocator("torch", device)


def test_an_end_of_the_process_with_memory_out_is_silent(run_python, device):
    script = f"""
        import ctypes
        import anabranch as ab

        class Memory:
            def allocate(self, nbytes, stream):
                self.kept = ctypes.create_string_buffer(nbytes + 16)
                address = ctypes.addressof(self.kept)
                return address + -address % 16

            def deallocate(self, *_):
                print("late")

        memory = Memory()
        ab.set_allocator(memory, "cpu")
        s = ab.Stream("cpu")
        array = ab.zeros(4, stream=s)
        gate = ab.testing.Gate(s)
        ab.fill(array, 1, stream=s)
        print({device.alias!r})
        """
    assert run_python(script) == f"{device.alias}\n"


def test_memory_goes_back_though_its_maker_s_identifier_is_a_sleeping_thread_s(device, allocator):
    # Without the interpreter lock objects are ended by the thread of that identifier, when it runs Python again.
    stream, awake = ab.Stream(device), threading.Event()
    with ab.testing.Gate(stream):
        maker = threading.Thread(target=lambda: ab.full(4, 1, stream=stream))
        maker.start()
        maker.join()
        sleepers = []
        while len(sleepers) < 50 and maker.ident not in [sleeper.ident for sleeper in sleepers]:
            sleepers.append(threading.Thread(target=awake.wait, daemon=True))
            sleepers[-1].start()
    try:
        assert allocator.is_empty()
    finally:
        awake.set()
        for sleeper in sleepers:
            sleeper.join()
