"""What a graph keeps alive, and for how long."""

import gc
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import comes
from .replays import assert_all, give, kinds


def borrowed():
    """Make an array of memory that is not ours, and an event that is set when it is let go."""
    memory, gone = np.zeros(8, "float32"), threading.Event()
    weakref.finalize(memory, gone.set)
    return ab.asarray(memory), gone


@pytest.fixture
def host_device(device):
    if device.alias != "cpu:0":
        pytest.skip("memory of the host is the first CPU's")
    return device


def copy_graph(target, source):
    with ab.capture(ab.Stream(target.device)) as graph:
        ab.copy(target, source)
    return graph


@pytest.mark.parametrize("within", [False, True])
def test_an_array_that_is_closed_in_the_capture_or_later_stays_the_graph_s(device, target, within):
    source = ready(device)
    give(source, 7)
    with ab.capture(ab.Stream(device)) as graph:
        ab.copy(target, source)
        if within:
            source.close()
    source.close()
    assert kinds(graph) == ["copy"]
    others = [ab.full(8, -1, "float32", device=device) for _ in range(10)]
    graph.launch()
    assert_all(target, 7)
    assert len(others) == 10


def test_arrays_live_as_long_as_the_graph(device, target):
    source = ready(device)
    give(source, 7)
    graph = copy_graph(target, source)
    del source
    gc.collect()
    others = [ab.full(8, -1, "float32", device=device) for _ in range(10)]
    for _ in range(3):
        give(target, 0)
        graph.launch()
        assert_all(target, 7)
    assert len(others) == 10


def test_borrowed_memory_is_let_go_with_the_graph(host_device):
    array, gone = borrowed()
    graph = copy_graph(ready(host_device), array)
    del array
    gc.collect()
    assert not gone.is_set()
    del graph
    gc.collect()
    assert comes(gone)


def test_borrowed_memory_is_let_go_when_the_graph_is_closed(host_device):
    array, gone = borrowed()
    graph = copy_graph(ready(host_device), array)
    del array
    graph.launch()
    host_device.synchronize()
    graph.close()
    gc.collect()
    assert comes(gone)


def test_an_instance_keeps_what_the_graph_kept(host_device):
    array, gone = borrowed()
    graph = copy_graph(ready(host_device), array)
    other = graph.instance()
    del array, graph
    gc.collect()
    assert not gone.is_set()
    other.launch()
    del other
    host_device.synchronize()
    gc.collect()
    assert comes(gone)


def test_a_graph_may_go_while_its_replays_are_queued(host_device):
    stream, target = ab.Stream(host_device), ready(host_device)
    array, gone = borrowed()
    graph = copy_graph(target, array)
    ab.fill(array, 7, stream=stream)
    with ab.testing.Gate(stream):
        for _ in range(3):
            graph.launch(stream)
        del graph, array
        gc.collect()
        assert not gone.is_set()
    stream.synchronize()
    assert_all(target, 7)
    del stream
    gc.collect()
    assert comes(gone)


def test_a_graph_may_go_while_its_replays_wait_for_each_other(device):
    a, b, array = ab.Stream(device), ab.Stream(device), ready(device)
    with ab.capture(a) as graph, ab.fork(2) as (c, d):
        ab.fill(array[:4], 7, stream=c)
        ab.fill(array[4:], 7, stream=d)
    with ab.testing.Gate(a):
        for stream in a, b, a, b:
            graph.launch(stream)
        del graph, a
        gc.collect()
    b.synchronize()
    assert_all(array, 7)


class Thing:
    """A Python object to which there are weak references."""

    def __call__(self):
        """Do nothing."""


def finalized(thing):
    gone = threading.Event()
    weakref.finalize(thing, gone.set)
    return gone


def test_a_host_function_and_its_arguments_live_as_long_as_the_graph(device):
    stream, things = ab.Stream(device), [Thing(), Thing()]
    gone = [finalized(thing) for thing in things]
    with ab.capture(stream) as graph:
        stream.submit(lambda one, other: None, *things)
    del things
    for _ in range(2):
        graph.launch(stream)
    stream.synchronize()
    gc.collect()
    assert not any(one.is_set() for one in gone)
    del graph
    gc.collect()
    assert all(comes(one) for one in gone)


def test_a_host_function_that_holds_its_graph_lives_until_the_graph_is_closed(device):
    stream, holder = ab.Stream(device), Thing()
    gone = finalized(holder)
    with ab.capture(stream) as graph:
        stream.submit(holder)
    holder.graph = graph
    graph.close()
    del holder, graph
    gc.collect()
    assert comes(gone)


@pytest.mark.numba
def test_a_kernel_lives_as_long_as_the_graph(device):
    def add(i, y: ab.InOut):
        y[i] += 1

    stream, array, kernel = ab.Stream(device), ready(device), ab.kernel(add)
    with ab.capture(stream) as graph:
        ab.launch(kernel, 8, array)
    del kernel, add
    gc.collect()
    for value in 1, 2, 3:
        graph.launch(stream)
        assert_all(array, value)


def test_nodes_outlive_their_graph(device):
    graph = copy_graph(ready(device), ready(device))
    (node,) = graph.nodes
    del graph
    gc.collect()
    assert (node.kind, node.device) == ("copy", device)


def test_a_graph_is_dropped_by_another_thread(in_thread, stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array, 7)
    holder = [graph]
    with ab.testing.Gate(stream):
        graph.launch(stream)
        del graph
        in_thread(holder.clear).result(20)
        gc.collect()
    stream.synchronize()
    assert_all(array, 7)


def test_the_graph_of_a_capture_may_be_dropped_during_it(stream, array):
    with ab.capture(stream):
        ab.fill(array, 7)
    gc.collect()
    stream.synchronize()
    assert_all(array, 0)


def test_exit_with_replays_behind_a_gate_is_quiet(run_python):
    run_python("""
        import anabranch as ab
        stream, array = ab.Stream(), ab.zeros(8)
        with ab.capture(stream) as graph:
            ab.fill(array, 7)
            stream.submit(int)
        gate = ab.testing.Gate(stream)
        for _ in range(3):
            graph.launch(stream)
    """)


def test_exit_in_a_capture_is_quiet(run_python):
    run_python("""
        import anabranch as ab
        stream, array = ab.Stream(), ab.zeros(8)
        block = ab.capture(stream)
        graph = block.__enter__()
        ab.fill(array, 7, stream=stream)
        made = ab.zeros(8, stream=stream)
    """)
