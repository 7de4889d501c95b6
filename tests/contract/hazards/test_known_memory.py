"""Memory with several handles: whoever uses it by one comes after its use by another, however they overlap.

The same holds within a capture.
"""

import random
import threading
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch as ab

from ..accesses import complete, ready, streams
from ..arrays import comes, held
from ..graphs.replays import joined


def read_only(data):
    data = data[...]
    data.flags.writeable = False
    return data


def through_interface(array):
    """Have an array come back from a library that shows its memory by an array interface."""
    if array.device.kind == "cpu":
        return ab.asarray(np.asarray(array))
    return ab.asarray(SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__))


def through_dlpack(array):
    """Have an array come back from a library that speaks DLPack."""
    exported = SimpleNamespace(__dlpack__=array.__dlpack__, __dlpack_device__=array.__dlpack_device__)
    return ab.from_dlpack(exported)


OURS = {
    "back by an interface": lambda array: (array, through_interface(array)),
    "back by dlpack": lambda array: (array, through_dlpack(array)),
    "a part back by an interface": lambda array: (array, through_interface(array[2:6])),
    "two parts back by dlpack": lambda array: (through_dlpack(array[:6]), through_dlpack(array[2:])),
}
THEIRS = {
    "twice": lambda x: (ab.asarray(x), ab.asarray(x)),
    "read-only, then writable": lambda x: (ab.asarray(read_only(x)), ab.asarray(x)),
    "writable, then read-only": lambda x: (ab.asarray(x), ab.asarray(read_only(x))),
    "part, then whole": lambda x: (ab.from_dlpack(x[:6]), ab.from_dlpack(x)),
    "whole, then part": lambda x: (ab.from_dlpack(x), ab.from_dlpack(x[2:])),
    "parts that overlap": lambda x: (ab.from_dlpack(x[:6]), ab.from_dlpack(x[2:])),
    "later part first": lambda x: (ab.from_dlpack(x[2:]), ab.from_dlpack(x[:6])),
    "part by dlpack, whole by interface": lambda x: (ab.from_dlpack(x[:6]), ab.asarray(x)),
    "three": lambda x: (ab.from_dlpack(x[:5]), ab.from_dlpack(x[7:]), ab.from_dlpack(x))[1:],
}


@pytest.fixture(params=[*OURS, *THEIRS])
def handles(request, device):
    """Two arrays that share elements, whose memory is in order with everything."""
    if request.param in OURS:
        arrays = OURS[request.param](ready(device))
    else:
        arrays = THEIRS[request.param](np.zeros(8, "float32"))
    ab.synchronize()
    return arrays


def access(array, stream):
    """Write to an array in a stream, or if nobody may, read it."""
    if array.read_only:
        ab.copy(ab.empty(array.shape, stream=stream), array, stream=stream)
    else:
        ab.fill(array, 2, stream=stream)


def first_to_write(handles):
    """The handles, the one first that may be written by."""
    return sorted(handles, key=lambda array: array.read_only)


@contextmanager
def two_streams(device, captured, before=lambda: None):
    """Two streams without order, of a capture whose first operation is given."""
    if not captured:
        yield streams(device)
        return
    stream = ab.Stream(device)
    with ab.capture(stream):
        before()
        yield joined(device, stream, 2)


each_where = pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])


@each_where
def test_a_race_between_two_handles_is_found(handles, captured):
    one, other = first_to_write(handles)
    with ab.hazards("check"):
        with pytest.raises(ab.RaceError), two_streams(one.device, captured) as (a, b):  # noqa: PT012
            ab.fill(one, 1, stream=a)
            access(other, b)
        ab.synchronize()
        with two_streams(one.device, captured) as (a, b):
            ab.fill(one, 1, stream=a)
            b.wait_stream(a)
            access(other, b)


def test_order_between_two_handles_is_an_edge(handles):
    one, other = first_to_write(handles)
    stream = ab.Stream(one.device)
    with ab.capture(stream) as graph:
        ab.fill(one[:1], 0)
        a, b = joined(one.device, stream, 2)
        ab.fill(one, 1, stream=a)
        access(other, b)
    graph.launch(stream)
    first, second = (node for node in graph.nodes if node.kind in ("fill", "copy") and node.index != 0)
    assert (first, second) in graph.edges
    if not other.read_only:
        np.testing.assert_array_equal(other.numpy(), 2)


def test_a_stream_comes_after_what_another_handle_is_used_for(handles):
    one, other = first_to_write(handles)
    a, b = streams(one.device)
    with ab.testing.Gate(a):
        ab.fill(one, 1, stream=a)
        access(other, b)
        assert not b.query()
    b.synchronize()
    if not other.read_only:
        np.testing.assert_array_equal(other.numpy(), 2)


def test_the_host_waits_for_what_another_handle_is_used_for(handles, in_thread):
    one, other = first_to_write(handles)
    a = ab.Stream(one.device)
    gate = ab.testing.Gate(a)
    ab.fill(one, 1, stream=a)
    elements = in_thread(other.numpy)
    assert held(elements)
    gate.open()
    assert 1 in elements.result(10)


def test_the_host_cannot_have_what_a_capture_writes_by_another_handle(handles):
    one, other = first_to_write(handles)
    with pytest.raises(ab.CaptureError, match="captured work writes"), ab.capture(ab.Stream(one.device)):  # noqa: PT012
        ab.fill(one, 1)
        other.numpy()
    np.testing.assert_array_equal(other.numpy(), 0)


def test_handles_that_share_no_element_have_nothing_to_do_with_each_other(device):
    x = np.zeros(8, "float32")
    whole, even, odd = ab.from_dlpack(x[1:7]), ab.from_dlpack(x[::2]), ab.from_dlpack(x[1::2])
    a, b = streams(ab.Device("cpu:0"))
    with ab.testing.Gate(a):
        ab.fill(even, 1, stream=a)
        ab.fill(odd, 2, stream=b)
        assert b.submit(int).result(10) == 0  # it did not wait
        ab.fill(whole, 3, stream=b)
        assert not b.query()
    ab.synchronize()
    np.testing.assert_array_equal(x, [1, 3, 3, 3, 3, 3, 3, 2])


def some(rng, size):
    """Return a random slice that leaves something over."""
    start, step = rng.randrange(size), rng.choice([1, 1, 2, 3, -1, -2])
    stop = rng.randrange(start, size) + 1 if step > 0 else rng.randrange(-1, start)
    return slice(start, None if stop < 0 else stop, step)


def handles_at_random(rng, size):
    """Make handles of parts of one memory, each with the places of its elements."""
    x, places = np.zeros(size, "float32"), np.arange(size)
    parts = [some(rng, size) for _ in range(rng.randrange(2, 5))]
    return [(ab.from_dlpack(x[part]), places[part]) for part in parts]


def access_at_random(rng, handles, streams, sources):
    """Access views of the handles in streams without order, and see that those race that share an element."""
    past = []
    for _ in range(8):
        number, writes, (handle, elements) = rng.randrange(2), rng.random() < 0.5, rng.choice(handles)
        view = some(rng, len(elements))
        touched = set(elements[view].tolist())
        with ab.collect_races() as races:
            if writes:
                ab.fill(handle[view], 1, stream=streams[number])
            else:
                ab.copy(sources[number][: len(touched)], handle[view], stream=streams[number])
        expected = any(number != other and (writes or wrote) and touched & earlier for other, wrote, earlier in past)
        assert bool(races) == expected
        past.append((number, writes, touched))


@pytest.mark.parametrize("first", [None, 0, 1])
def test_of_random_views_by_random_handles_those_race_that_share_an_element(device, first):
    """In a capture that first uses one of the handles, or in none."""
    rng, size, cpu = random.Random(2 + (-1 if first is None else first)), 16, ab.Device("cpu:0")
    sources = [ab.zeros(size, device=cpu) for _ in range(2)]
    for _ in range(150 if first is None else 100):
        ab.synchronize()
        handles = handles_at_random(rng, size)
        with two_streams(cpu, first is not None, lambda handles=handles: ab.fill(handles[first][0], 0)) as pair:
            access_at_random(rng, handles, pair, sources)


@pytest.mark.parametrize("part", [np.s_[:], np.s_[2:], np.s_[:6]], ids=str)
@pytest.mark.parametrize("take", [ab.asarray, ab.from_dlpack])
def test_what_is_under_way_with_an_array_that_is_gone_comes_first(device, take, part):
    x = np.zeros(8, "float32")
    a, b = streams(ab.Device("cpu:0"))
    with ab.testing.Gate(a):
        ab.fill(take(x), 1, stream=a)
        ab.fill(take(x[part]), 2, stream=b)
        assert not b.query()
        with ab.hazards("check"), pytest.raises(ab.RaceError):
            ab.fill(take(x[3:5]), 3, stream=ab.Stream("cpu:0"))
    ab.synchronize()
    np.testing.assert_array_equal(x[part], 2)


def test_what_is_gone_is_also_known_to_handles_that_were_there(device):
    x = np.zeros(8, "float32")
    kept = ab.from_dlpack(x[:4])
    a, b = streams(ab.Device("cpu:0"))
    with ab.testing.Gate(a):
        ab.fill(ab.from_dlpack(x), 1, stream=a)
        ab.fill(kept, 2, stream=b)
        assert not b.query()
    ab.synchronize()
    np.testing.assert_array_equal(x, [2, 2, 2, 2, 1, 1, 1, 1])


def test_a_race_with_a_handle_that_is_gone_is_found(device):
    x = np.zeros(8, "float32")
    inner, whole = ab.from_dlpack(x[2:6]), ab.from_dlpack(x)
    a, b = streams(ab.Device("cpu:0"))
    with ab.hazards("check"):
        ab.fill(inner, 1, stream=a)
        complete(a)
        inner.close()
        with pytest.raises(ab.RaceError):
            ab.fill(whole, 2, stream=b)
        b.wait_stream(a)
        ab.fill(whole, 2, stream=b)


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("by_the_part", [False, True])
def test_the_last_handle_of_memory_returns_it(device, by_the_part, through):
    x = np.zeros(8, "float32")
    part, whole = ab.from_dlpack(x[:6]), ab.from_dlpack(x)
    stream = ab.Stream("cpu:0")
    with ab.hazards("check"):
        ab.fill(part if by_the_part else whole, 1, stream=stream)
        if through:
            complete(stream)
        part.close()
        with pytest.raises(ab.RaceError) as raised:
            whole.close()
        assert raised.value.kind == "FREE"
        stream.synchronize()
        whole.close()


def test_handles_keep_what_they_have_of_memory_that_another_returns(device):
    x = np.zeros(8, "float32")
    low, high, whole = ab.from_dlpack(x[:4]), ab.from_dlpack(x[4:]), ab.from_dlpack(x)
    stream = ab.Stream("cpu:0")
    with ab.hazards("check"):
        ab.fill(whole, 1, stream=stream)
        whole.close()
        stream.synchronize()
        low.close()
        whole = ab.from_dlpack(x[2:])
        ab.fill(high, 1, stream=stream)
        high.close()
        ab.fill(whole[:2], 1, stream=stream)
        with pytest.raises(ab.RaceError):
            whole.close()
    stream.synchronize()


def test_memory_that_is_gone_goes_back_when_its_use_is_over(device):
    class Owner:
        def __init__(self):
            self.memory = np.zeros(8, "float32")
            self.__array_interface__ = self.memory.__array_interface__

    owner, gone = Owner(), threading.Event()
    weakref.finalize(owner, gone.set)
    stream = ab.Stream("cpu:0")
    with ab.testing.Gate(stream):
        ab.fill(ab.asarray(owner), 1, stream=stream)
        again = ab.asarray(owner.memory[2:])
        del owner
        assert not gone.is_set()
    stream.synchronize()
    assert comes(gone)
    again.close()


def test_each_handle_has_its_own_rights(device):
    x = np.zeros(8, "float32")
    for writable, other in ((ab.asarray(x), ab.asarray(read_only(x))), (ab.asarray(x), ab.from_dlpack(read_only(x)))):
        assert (writable.read_only, other.read_only, other[2:].read_only) == (False, True, True)
        with pytest.raises(ValueError, match="read-only"):
            ab.fill(other, 1)
        ab.fill(writable, 1)
    assert np.asarray(writable).flags.writeable
    assert not np.asarray(other).flags.writeable


def test_an_array_that_comes_back_is_still_its_device_s(device):
    array = ab.ones(8, device=device)
    for back in through_interface(array), through_dlpack(array), through_interface(array[2:]):
        assert back.device is device
        assert back.ptr in (array.ptr, array[2:].ptr)
    array.close()
    np.testing.assert_array_equal(back.numpy(), 1)
