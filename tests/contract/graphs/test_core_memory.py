"""Memory of a capture's own that others use before it ends: streams that take no part, other captures, other graphs."""

import gc
import threading
from types import SimpleNamespace

import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT
from .replays import assert_all, give, kinds

SIZE = 1000


@ab.kernel
def look(i, x: ab.In, y: ab.InOut):
    y[i] = x[i]


def others(device):
    """Make arrays of which some would get memory that is given back too early."""
    return [ab.full(SIZE, 9, "float32", device=device) for _ in range(20)]


def test_what_ran_at_once_is_waited_for_by_replays(device):
    stream, other = ab.Stream(device), ab.Stream(device)
    gate = ab.testing.Gate(other)
    with ab.capture(stream) as graph:
        array = ab.empty(SIZE)
        ab.fill(array, 9, stream=other)  # takes no part, so it runs at once
        pointer = array.ptr
        del array
        later = ab.full(SIZE, 3, "float32")
    assert later.ptr != pointer  # nothing in the capture comes after the fill
    graph.launch(stream)
    assert not stream.query()
    gate.open()
    stream.synchronize()
    assert_all(later, 3)


def test_memory_of_a_graph_goes_back_after_what_ran_at_once(device):
    stream, other = ab.Stream(device), ab.Stream(device)
    gate = ab.testing.Gate(other)
    with ab.capture(stream) as graph:
        array = ab.empty(SIZE)
        ab.fill(array, 5, stream=other)
        del array
    graph.close()
    del graph
    gc.collect()
    later = [ab.full(SIZE, 9, "float32", device=device, stream=stream) for _ in range(20)]
    stream.synchronize()
    gate.open()
    other.synchronize()
    for each in later:
        assert_all(each, 9)


def test_another_capture_keeps_what_it_uses(device, in_thread):
    stream, result = ab.Stream(device), ready(device, SIZE)
    made, end = threading.Event(), threading.Event()
    shared = []

    def capture():
        second = ab.Stream(device)
        with ab.capture(second) as graph:
            shared.append(ab.full(SIZE, 5, "float32"))
            made.set()
            assert end.wait(TIMEOUT)
        graph.launch(second)
        second.synchronize()
        return kinds(graph)

    captured = in_thread(capture)
    assert made.wait(TIMEOUT)
    array = shared.pop()
    with ab.capture(stream) as graph:
        ab.copy(result, array)
        del array
    end.set()
    assert captured.result(TIMEOUT) == ["alloc", "fill"]
    gc.collect()
    later = others(device)
    give(result, 0)
    graph.launch(stream)
    assert_all(result, 5)
    for each in later:
        assert_all(each, 9)


@pytest.mark.numba
def test_new_arguments_from_a_capture_are_kept(device):
    stream, x, y = ab.Stream(device), ready(device, SIZE), ready(device, SIZE)
    with ab.capture(stream) as graph:
        ab.launch(look, SIZE, x, y)
    second = ab.Stream(device)
    with ab.capture(second) as other:
        array = ab.full(SIZE, 5, "float32")
        graph.set_args(graph.nodes[0], array, y)
        del array
    assert kinds(other) == ["alloc", "fill"]
    other.launch(second)
    second.synchronize()
    other.close()
    del other
    gc.collect()
    later = others(device)
    graph.launch(stream)
    assert_all(y, 5)
    assert len(later) == 20


def test_an_empty_array_of_a_capture_outlives_it(stream):
    with ab.capture(stream) as graph:
        array = ab.empty(0)
        ab.fill(array, 1)
    graph.close()
    del graph
    gc.collect()
    ab.fill(array, 1, stream=stream)
    with ab.capture(stream):
        ab.fill(array, 1)
    assert array.numpy().size == 0


@pytest.mark.parametrize("aborted", [False, True])
@pytest.mark.parametrize("within", [False, True])
def test_memory_whose_address_was_shown_in_a_capture_is_known_after_it(device, within, aborted):
    stream, made = ab.Stream(device), []

    def hand_in(address):
        kind = "__array_interface__" if device.kind == "cpu" else "__cuda_array_interface__"
        description = {"version": 3, "shape": (SIZE - 1,), "typestr": "<f4", "data": (address, False)}
        return ab.asarray(SimpleNamespace(**{kind: description}))

    def capture():
        with ab.capture(stream) as graph:
            array = ab.empty(SIZE)
            address = array[1:].ptr
            made.extend([array, hand_in(address) if within else address])
            if aborted:
                raise KeyError
        return graph

    if aborted:
        with pytest.raises(KeyError):
            capture()
    else:
        capture().launch(stream)
    array, other = made if within else (made[0], hand_in(made[1]))
    ab.synchronize()
    other_stream = ab.Stream(other.device)
    with ab.hazards("check"):
        ab.fill(array, 1, stream=stream)
        with pytest.raises(ab.RaceError):
            ab.fill(other, 2, stream=other_stream)
        other_stream.wait_stream(stream)
        ab.fill(other, 2, stream=other_stream)
    assert array.numpy()[-1] == 2
