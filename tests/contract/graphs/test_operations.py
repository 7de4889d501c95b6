"""What a capture records: copies, fills, kernels, host functions, and graphs."""

import threading

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import DTYPES, TIMEOUT, values
from .replays import SIZE, assert_all, edges, give, kinds, replays_to


@ab.kernel
def add(i, number, x: ab.In, y: ab.InOut):
    y[i] = y[i] + number * x[i]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fill_of_every_dtype(device, dtype, stream):
    array = ab.array(values(SIZE, dtype), device=device)
    with ab.capture(stream) as graph:
        ab.fill(array[::2], 1)
    expected = values(SIZE, dtype)
    expected[::2] = 1
    graph.launch(stream)
    np.testing.assert_array_equal(array.numpy(), expected)


COPIES = {
    "whole": (np.s_[:], np.s_[:]),
    "part": (np.s_[2:6], np.s_[4:8]),
    "strided source": (np.s_[:4], np.s_[::2]),
    "strided destination": (np.s_[1::2], np.s_[:4]),
    "backwards": (np.s_[:], np.s_[::-1]),
}
each_copy = pytest.mark.parametrize(("to", "start"), COPIES.values(), ids=COPIES)


@each_copy
def test_a_copy_with_new_contents_at_each_replay(device, to, start, stream):
    source, target = ready(device, SIZE), ready(device, SIZE)
    with ab.capture(stream) as graph:
        ab.copy(target[to], source[start])
    for number in range(3):
        given, expected = values(SIZE) + number, np.array(target)
        expected[to] = given[start]
        ab.copy(source, ab.array(given, device=device), stream=stream)
        graph.launch(stream)
        np.testing.assert_array_equal(target.numpy(), expected)


def test_a_copy_with_offsets(device, stream):
    source, target = ab.array(values(SIZE), device=device), ready(device, SIZE)
    with ab.capture(stream) as graph:
        ab.copy(target, source, dst_offset=1, src_offset=3, count=4)
    graph.launch(stream)
    expected = np.zeros(SIZE, "float32")
    expected[1:5] = values(SIZE)[3:7]
    np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.parametrize(("to", "start"), [(np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:])])
def test_a_copy_onto_itself(device, to, start):
    stream, array = ab.Stream(device), ab.array(values(SIZE), device=device)
    with ab.capture(stream) as graph:
        ab.copy(array[to], array[start])
    expected = values(SIZE)
    for _ in range(3):
        expected[to] = expected[start].copy()
        graph.launch(stream)
        np.testing.assert_array_equal(array.numpy(), expected)


def test_a_copy_between_devices(device, other_device):
    if "cpu" in (device.kind, other_device.kind) and device.kind != other_device.kind:
        pytest.skip("a copy between a GPU and memory that is not pinned cannot be captured")
    stream, source, target = ab.Stream(device), ready(device), ready(other_device)
    with ab.capture(stream) as graph:
        ab.copy(target, source, stream=stream)
    for value in 1, 2, 3:
        give(source, value)
        replays_to(graph, stream, [target], value)


def test_a_copy_of_pinned_memory(device):
    stream, source = ab.Stream(device), ab.zeros(SIZE, device="cpu", pinned=True)
    target = ready(device)
    with ab.capture(stream) as graph:
        ab.copy(target, source, stream=stream)
    for value in 1, 2, 3:
        with source.host(write=True) as view:
            view[...] = value
        replays_to(graph, stream, [target], value)


def test_an_array_of_pinned_memory_can_be_made_in_a_capture(device):
    stream, source = ab.Stream(device), ab.full(SIZE, 3, device="cpu", pinned=True)
    source.numpy()
    with ab.capture(stream) as graph:
        array = ab.array(source, device=device)
    assert kinds(graph)[:2] == ["alloc", "copy"]
    replays_to(graph, stream, [array], 3)


def test_nothing_to_do_is_no_node(stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array[:0], 1)
        ab.copy(array[:0], array[:0])
    assert "copy" not in kinds(graph)
    assert "fill" not in kinds(graph)


def test_what_is_refused_outside_is_refused_inside_and_the_capture_goes_on(stream, array):
    with ab.capture(stream) as graph:
        with pytest.raises(ValueError, match="shape"):
            ab.copy(array, array[:2])
        with pytest.raises(TypeError):
            ab.fill("no array", 1)
        ab.fill(array, 1)
    assert kinds(graph) == ["fill"]
    replays_to(graph, stream, [array], 1)


@pytest.mark.numba
def test_a_kernel(stream, x, y):
    with ab.capture(stream) as graph:
        ab.launch(add, SIZE, 3.0, x, y)
    assert [(node.kind, node.name) for node in graph.nodes] == [("kernel", "add")]
    for value in 1, 2, 3:
        give(x, value)
        give(y, 10)
        replays_to(graph, stream, [y], 10 + 3 * value)


@pytest.mark.numba
def test_one_kernel_on_two_streams_has_its_arguments_twice(a, x, y, z):
    give(x, 1)
    with ab.capture(a) as graph, ab.fork(2) as (b, c):
        ab.launch(add, SIZE, 3.0, x, y, stream=b)
        ab.launch(add, SIZE, 5.0, x, z, stream=c)
    assert edges(graph) == set()
    replays_to(graph, a, [y, z], 3, 5)


@pytest.mark.numba
def test_a_launch_of_nothing_is_no_node(device):
    with ab.capture(ab.Stream(device)) as graph:
        ab.launch(add, 0, 3.0, ready_outside := ab.zeros(1, stream=ab.Stream(device)), ready_outside)
    assert kinds(graph) == []


# Host functions


def test_a_host_function_is_called_by_each_replay(device):
    stream, calls = ab.Stream(device), []
    with ab.capture(stream) as graph:
        stream.submit(calls.append, 1)
    assert calls == []
    assert kinds(graph) == ["host"]
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert calls == [1, 1, 1]


def test_the_future_is_of_the_first_replay(device):
    stream, results = ab.Stream(device), iter("abc")
    with ab.capture(stream) as graph:
        future = stream.submit(lambda: next(results))
        assert not future.done()
    assert not future.done()
    graph.launch(stream)
    graph.launch(stream)
    assert future.result(TIMEOUT) == "a"
    stream.synchronize()
    assert next(results) == "c"


def test_a_host_function_takes_what_it_is_given_and_tells_its_name(device):
    stream, got = ab.Stream(device), []

    def keep(*args, **kwargs):
        got.append((args, kwargs))

    with ab.capture(stream) as graph:
        stream.submit(keep, 1, 2, three=3)
    assert graph.nodes[0].name.endswith("keep")
    graph.launch(stream)
    stream.synchronize()
    assert got == [((1, 2), {"three": 3})]


def test_a_host_function_is_in_order_with_what_it_reads_and_writes(a, b, x, y):
    seen = []
    with ab.capture(a) as graph:
        b.wait_stream(a)
        ab.fill(x, 5, stream=a)
        b.submit(lambda: seen.append(x.numpy()[0]), reads=[x])
        ab.fill(x, 6, stream=a)
        b.submit(int, writes=[y])
        ab.fill(y, 1, stream=a)
    assert edges(graph) == {(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)}
    for _ in range(3):
        replays_to(graph, a, [x, y], 6, 1)
    assert seen == [5, 5, 5]


def test_a_host_function_that_raises_fails_the_stream_of_its_replay(device, failures_forgotten):
    stream, other, array = ab.Stream(device), ab.Stream(device), ready(device)

    def fail():
        raise ZeroDivisionError("by nought")

    with ab.capture(stream) as graph:
        future = stream.submit(fail)
        ab.fill(array, 7)
    graph.launch(stream)
    with pytest.raises(ZeroDivisionError):
        future.result(TIMEOUT)
    with pytest.raises(ab.KernelError, match=r"fail.*by nought"):
        stream.synchronize()
    assert other.query()


def test_host_functions_of_two_branches_run_at_the_same_time(device):
    stream, meet = ab.Stream(device), threading.Barrier(2)
    with ab.capture(stream) as graph, ab.fork(2) as branches:
        futures = [branch.submit(meet.wait, TIMEOUT) for branch in branches]
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
    assert {future.result(TIMEOUT) for future in futures} == {0, 1}


def test_a_host_function_may_use_streams_of_its_own(device, stream, array):
    def work():
        own = ab.Stream(device)
        ab.fill(array, 4, stream=own)
        own.synchronize()

    with ab.capture(stream) as graph:
        future = stream.submit(work)
    graph.launch(stream)
    future.result(TIMEOUT)
    assert_all(array, 4)


# Graphs within graphs


def test_a_launch_in_a_capture_is_a_node(stream, x, y):
    with ab.capture(stream) as inner:
        ab.fill(x, 1)
        ab.copy(y, x)
    with ab.capture(stream) as outer:
        ab.fill(x, 2)
        inner.launch()
        ab.fill(x, 3)
    assert kinds(outer) == ["fill", "graph", "fill"]
    assert edges(outer) == {(0, 1), (1, 2)}
    replays_to(outer, stream, [x, y], 3, 1)
    assert (inner.replays, outer.replays) == (0, 1)


def test_a_graph_within_runs_without_the_one_it_came_from(device):
    stream, x, calls = ab.Stream(device), ready(device), []
    with ab.capture(stream) as inner:
        ab.fill(x, 1)
        stream.submit(calls.append, 1)
    with ab.capture(stream) as outer:
        inner.launch()
        inner.launch()
    inner.close()
    del inner
    for _ in range(3):
        replays_to(outer, stream, [x], 1)
    assert calls == [1] * 6


def test_graphs_within_are_in_order_by_what_they_access(a, x, y):
    with ab.capture(a) as first:
        ab.fill(x, 1)
    with ab.capture(a) as second:
        ab.copy(y, x)
    with ab.capture(a) as outer, ab.fork(2) as (b, c):
        first.launch(b)
        second.launch(c)
        first.launch(b)
    assert edges(outer) == {(0, 1), (1, 2)}
