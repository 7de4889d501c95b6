"""Memory that a capture allocates and frees: which nodes come of it, in which order, and what is used again."""

import gc

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT, becomes
from .replays import SIZE, assert_all, edges, give, kinds


class Script:
    """Runs lines within a capture. Streams are a (the captured one), b, c …; arrays x, y, z ….

    `alloc x a`, `write x a`, `read x a` (into memory of the stream's own, from outside), `free x`, `b waits a`.
    """

    def __init__(self, device):
        self.device, self.arrays, self.pointers, self.labels = device, {}, {}, []
        self.streams = {name: ab.Stream(device) for name in "abcd"}
        self.sinks = {name: ready(device) for name in "abcd"}

    def run(self, text):
        with ab.hazards("off"), ab.capture(self.streams["a"]) as graph:
            for line in text.split("; "):
                self.step(line, *line.split())
        return graph

    def step(self, line, first, second, third=None):
        if second == "waits":
            self.streams[first].wait_stream(self.streams[third])
            return
        if first == "alloc":
            self.arrays[second] = ab.empty(SIZE, stream=self.streams[third])
            self.pointers[second] = self.arrays[second].ptr
        elif first == "write":
            ab.fill(self.arrays[second], 1, stream=self.streams[third])
        elif first == "read":
            ab.copy(self.sinks[third], self.arrays[second], stream=self.streams[third])
        elif first == "free":
            del self.arrays[second]
        self.labels.append(line)

    def edges(self, graph):
        return {f"{self.labels[before.index]} > {self.labels[after.index]}" for before, after in graph.edges}


KINDS = {"alloc": "alloc", "write": "fill", "read": "copy", "free": "free"}

# What runs, the edges of it, and which arrays get memory that another one had.
TOPOLOGIES = {
    "in one stream": (
        "alloc x a; write x a; free x",
        "alloc x a > write x a, write x a > free x",
        "",
    ),
    "never used": ("alloc x a; free x", "alloc x a > free x", ""),
    "never freed": ("alloc x a; write x a", "alloc x a > write x a", ""),
    "allocated in the parent, freed in a child": (
        "alloc x a; b waits a; write x b; free x; a waits b",
        "alloc x a > write x b, write x b > free x",
        "",
    ),
    "allocated in a child, freed in the parent": (
        "b waits a; alloc x b; a waits b; write x a; free x",
        "alloc x b > write x a, write x a > free x",
        "",
    ),
    "allocated and freed in a child, used again in the parent after the join": (
        "b waits a; alloc x b; write x b; free x; a waits b; alloc y a",
        "alloc x b > write x b, write x b > free x, free x > alloc y a",
        "y=x",
    ),
    "allocated and freed in a child, not used again in the parent without a join": (
        "b waits a; alloc x b; write x b; free x; alloc y a",
        "alloc x b > write x b, write x b > free x",
        "",
    ),
    "freed after use in two branches": (
        "alloc x a; b waits a; c waits a; read x b; read x c; a waits b; a waits c; free x",
        "alloc x a > read x b, alloc x a > read x c, read x b > free x, read x c > free x",
        "",
    ),
    "freed before the branches join": (
        "alloc x a; b waits a; c waits a; read x b; read x c; free x; a waits b; a waits c",
        "alloc x a > read x b, alloc x a > read x c, read x b > free x, read x c > free x",
        "",
    ),
    "used again in the same stream": (
        "alloc x a; write x a; free x; alloc y a; write y a",
        "alloc x a > write x a, write x a > free x, free x > alloc y a, alloc y a > write y a",
        "y=x",
    ),
    "used again and again": (
        "alloc x a; free x; alloc y a; free y; alloc z a; write z a",
        "alloc x a > free x, free x > alloc y a, alloc y a > free y, free y > alloc z a, alloc z a > write z a",
        "y=x z=x",
    ),
    "used again in the branch that freed it, not in the other": (
        "alloc x a; b waits a; c waits a; write x b; free x; alloc y c; alloc z b",
        "alloc x a > write x b, write x b > free x, alloc x a > alloc y c, free x > alloc z b",
        "z=x",
    ),
    "two branches have memory of their own": (
        "b waits a; c waits a; alloc x b; free x; alloc y c; free y",
        "alloc x b > free x, alloc y c > free y",
        "",
    ),
    "used again after one of two readers only": (
        "alloc x a; b waits a; c waits a; read x b; read x c; free x; a waits b; alloc y a; a waits c; alloc z a",
        "alloc x a > read x b, alloc x a > read x c, read x b > free x, read x c > free x, read x b > alloc y a, "
        "alloc y a > alloc z a, free x > alloc z a",
        "z=x",
    ),
    "freed in a fork in a fork": (
        "alloc x a; b waits a; c waits b; write x c; free x; b waits c; a waits b; alloc y a",
        "alloc x a > write x c, write x c > free x, free x > alloc y a",
        "y=x",
    ),
    "used by one branch after the other": (
        "alloc x a; b waits a; write x b; c waits b; read x c; free x; alloc y c",
        "alloc x a > write x b, write x b > read x c, read x c > free x, free x > alloc y c",
        "y=x",
    ),
    "freed while a branch goes on with other memory": (
        "alloc x a; alloc y a; b waits a; read x b; free x; write y a; read y b",
        "alloc x a > alloc y a, alloc y a > read x b, read x b > free x, alloc y a > write y a, read x b > read y b",
        "",
    ),
    "in adjacent forks": (
        "b waits a; alloc x b; write x b; free x; a waits b; c waits a; alloc y c; write y c; free y; a waits c",
        "alloc x b > write x b, write x b > free x, free x > alloc y c, alloc y c > write y c, write y c > free y",
        "y=x",
    ),
}


@pytest.mark.parametrize(("text", "expected", "again"), TOPOLOGIES.values(), ids=TOPOLOGIES)
@pytest.mark.uninitialized
def test_nodes_and_edges_of_memory(device, text, expected, again):
    script = Script(device)
    graph = script.run(text)
    assert kinds(graph) == [KINDS[label.split()[0]] for label in script.labels]
    assert script.edges(graph) == set(expected.split(", "))
    shared = {
        f"{later}={earlier}"
        for later, earlier in (("y", "x"), ("z", "x"), ("z", "y"))
        if later in script.pointers and script.pointers[later] == script.pointers[earlier]
    }
    assert shared - {"z=y"} == set(again.split())
    for _ in range(3):
        graph.launch(script.streams["a"])
    script.streams["a"].synchronize()


def test_memory_of_another_size_is_not_used_again(device):
    with ab.capture(ab.Stream(device)) as graph:
        small = ab.empty(SIZE)
        before = small.ptr
        del small
        large = ab.empty(1000 * SIZE)
    assert large.ptr != before
    assert kinds(graph) == ["alloc", "free", "alloc"]


def test_memory_of_another_device_is_not_used_again(device, other_device):
    stream = ab.Stream(device)
    with ab.capture(stream) as graph:
        array = ab.empty(SIZE)
        del array
        other = ab.Stream(other_device)
        other.wait_stream(stream)
        array = ab.empty(SIZE, device=other_device, stream=other)
    assert [node.device for node in graph.nodes] == [device, device, other_device]
    assert array.device is other_device


def test_an_allocation_is_the_same_memory_at_each_replay(device):
    stream, source = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        array = ab.empty(SIZE)
        ab.copy(array, source)
    pointer = array.ptr
    for value in 1, 2, 3:
        give(source, value)
        graph.launch(stream)
        assert_all(array, value)
        assert array.ptr == pointer


def test_memory_stays_with_the_array_after_the_graph(device, stream):
    with ab.capture(stream) as graph:
        array = ab.full(SIZE, 3, "float32")
    graph.launch(stream)
    del graph
    gc.collect()
    others = [ab.full(SIZE, -1, "float32", device=device) for _ in range(20)]
    assert_all(array, 3)
    ab.fill(array, 4, stream=ab.Stream(device))
    assert_all(array, 4)
    assert len(others) == 20


@pytest.mark.parametrize("freed_within", [False, True])
def test_memory_stays_with_the_graph_after_the_array(device, stream, freed_within):
    result = ready(device)
    with ab.capture(stream) as graph:
        array = ab.full(SIZE, 3, "float32")
        ab.copy(result, array)
        if freed_within:
            del array
    array = None
    gc.collect()
    others = [ab.full(SIZE, -1, "float32", device=device) for _ in range(20)]
    for _ in range(3):
        give(result, 0)
        graph.launch(stream)
        assert_all(result, 3)
    for other in others:
        assert_all(other, -1)


def test_a_temporary_is_different_memory_where_instances_overlap_not(device):
    """Two instances share the memory that was freed within, so they are in order under `auto`."""
    a, b = ab.Stream(device), ab.Stream(device)
    with ab.capture(a) as graph:
        ab.zeros(SIZE)
    other = graph.instance()
    with ab.testing.Gate(a):
        graph.launch(a)
        other.launch(b)
        assert not b.query()
    b.synchronize()


def test_a_view_keeps_memory_in_use(device):
    with ab.capture(ab.Stream(device)) as graph:
        array = ab.zeros(SIZE)
        view = array[2:]
        del array
        assert view.size == SIZE - 2
        del view
    assert kinds(graph) == ["alloc", "fill", "free"]
    assert edges(graph) == {(0, 1), (1, 2)}


def test_close_frees_as_dropping_does(device):
    with ab.capture(ab.Stream(device)) as graph:
        array = ab.zeros(SIZE)
        array.close()
    assert kinds(graph) == ["alloc", "fill", "free"]


def test_an_eager_array_that_is_dropped_is_no_node(device):
    stream, array, other = ab.Stream(device), ready(device), ready(device)
    give(array, 7)
    with ab.capture(stream) as graph:
        ab.copy(other, array)
        del array
        gc.collect()
    assert kinds(graph) == ["copy"]
    graph.launch(stream)
    assert_all(other, 7)


def test_an_array_that_no_node_uses_is_freed_during_the_capture(device):
    stream, array = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        del array
        gc.collect()
    assert kinds(graph) == []


def test_an_array_of_the_capture_may_be_dropped_by_another_thread(device, in_thread):
    stream, holder = ab.Stream(device), []
    with ab.capture(stream) as graph:
        holder.append(ab.zeros(SIZE))
        in_thread(holder.clear).result(TIMEOUT)
        gc.collect()
        later = ab.zeros(SIZE)
    assert kinds(graph) == ["alloc", "fill", "free", "alloc", "fill"]
    graph.launch(stream)
    assert_all(later, 0)


def test_an_array_of_the_capture_may_be_dropped_while_a_replay_runs(device):
    stream, result = ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        array = ab.full(SIZE, 3, "float32")
        ab.copy(result, array)
    with ab.testing.Gate(stream):
        graph.launch(stream)
        del array, graph
        others = [ab.full(SIZE, -1, "float32", device=device) for _ in range(20)]
    assert_all(result, 3)
    for other in others:
        assert_all(other, -1)


def test_every_way_to_make_an_array(stream):
    with ab.capture(stream) as graph:
        arrays = [ab.zeros(SIZE), ab.ones(SIZE), ab.full(SIZE, 2, "float32")]
        ab.empty(0)
    assert kinds(graph) == ["alloc", "fill"] * 3
    for _ in range(3):
        graph.launch(stream)
        for value, array in enumerate(arrays):
            np.testing.assert_array_equal(array.numpy(), np.full(SIZE, value, "float32"))
            give(array, -1)


@pytest.mark.memory
def test_a_graph_that_is_dropped_gives_its_memory_back(device):
    size = 1 << 24
    stream = ab.Stream(device)
    with ab.capture(stream) as graph:
        array = ab.zeros(size, "int8")
        del array
        array = ab.zeros(2 * size, "int8")
    graph.launch(stream)
    device.synchronize()
    free = device.free_memory
    del graph, array
    gc.collect()
    device.synchronize()
    assert becomes(lambda: device.free_memory >= free + 2 * size)


def test_what_had_memory_that_is_used_again_is_not_confused_with_later_arrays(device):
    stream, other, last = ab.Stream(device), ab.Stream(device), ready(device)
    with ab.capture(stream) as graph:
        first = ab.full(SIZE, 1)
        del first
        del last
        array = ab.full(SIZE, 2)
    others = [ab.full(SIZE, 3, "float32", device=device, stream=other) for _ in range(4)]
    with ab.hazards("check"):
        graph.launch(stream)
    assert_all(array, 2)
    for each in others:
        assert_all(each, 3)


@pytest.mark.thread_unsafe(reason="looks at a trace, which has the operations of all threads")
def test_memory_that_only_replays_use_orders_a_graph_and_one_that_contains_it(device):
    first, second = ab.Stream(device), ab.Stream(device)
    with ab.capture(first) as inner:
        array = ab.empty(SIZE)
        ab.fill(array, 1)
        del array
    with ab.capture(first) as outer:
        inner.launch(first)
    with ab.trace() as trace:
        with ab.testing.Gate(first):
            inner.launch(first)
            outer.launch(second)
        second.synchronize()
    assert [one.stream for one in trace.operations if one.kind == "wait" and one.added] == [second]
