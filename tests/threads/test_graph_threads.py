"""Captures and replays on several threads."""

import gc
import threading

import pytest

import anabranch as ab

from ..contract.accesses import ready
from ..contract.arrays import TIMEOUT
from ..contract.graphs.replays import assert_all, edges, kinds

THREADS = 4


def test_threads_capture_at_once(device, in_threads):
    arrays, meet = [ready(device) for _ in range(THREADS)], threading.Barrier(THREADS, timeout=TIMEOUT)

    def capture(number):
        stream = ab.Stream(device)
        with ab.capture(stream) as graph:
            meet.wait()
            for value in range(20):
                ab.fill(arrays[number], value + number, stream=stream)
                temporary = ab.zeros(8, stream=stream)
                del temporary
            meet.wait()
        return graph

    graphs = in_threads(THREADS, capture)
    for number, (graph, array) in enumerate(zip(graphs, arrays, strict=True)):
        assert kinds(graph) == ["fill", "alloc", "fill", "free"] * 20
        graph.launch()
        assert_all(array, 19 + number)


def test_threads_put_functions_into_one_captured_stream(device, in_threads):
    """Each node is told what it was made from, although another thread has put in the next one by then."""
    stream, meet = ab.Stream(device), threading.Barrier(THREADS, timeout=TIMEOUT)

    def work(number):
        meet.wait()
        return [(stream.submit(divmod, value, 10), divmod(value, 10)) for value in range(number, 400, THREADS)]

    with ab.capture(stream) as graph:
        futures = [each for pairs in in_threads(THREADS, work) for each in pairs]
    assert kinds(graph) == ["host"] * 400
    graph.launch(stream)
    assert [future.result(TIMEOUT) for future, _ in futures] == [expected for _, expected in futures]


def test_a_function_that_another_thread_put_into_a_capture_is_waited_for_after_it(device, in_thread):
    stream = ab.Stream(device)
    with ab.capture(stream) as graph:
        future = in_thread(stream.submit, int).result(TIMEOUT)
    with pytest.raises(TimeoutError):
        future.result(0)
    graph.launch(stream)
    assert future.result(TIMEOUT) == 0
    with pytest.raises(ab.CaptureError, match="runs when the graph is launched"), ab.capture(stream):
        in_thread(stream.submit, int).result(TIMEOUT).result(TIMEOUT)


def test_a_refused_capture_leaves_those_of_other_threads_alone(device, in_threads):
    meet, array = threading.Barrier(2, timeout=TIMEOUT), ready(device)

    def capture(number):
        stream = ab.Stream(device)
        if number:
            meet.wait()
            with pytest.raises(ab.CaptureError), ab.capture(stream):  # noqa: PT012
                ab.fill(ready(device), 1, stream=stream)
                stream.synchronize()
            meet.wait()
            return None
        with ab.capture(stream) as graph:
            meet.wait()
            meet.wait()
            ab.fill(array, 7)
        return graph

    in_threads(2, capture)[0].launch()
    assert_all(array, 7)


def churn(device, stop):
    """Allocate, enqueue, free, wait and collect, until told to stop."""
    stream, rounds = ab.Stream(device), 0
    while not stop.is_set() or rounds == 0:
        array = ab.full(100, rounds, "float32", stream=stream)
        node = [array]
        node.append(node)
        stream.submit(int)
        with ab.fork(2, stream) as (a, _):
            ab.fill(array, rounds + 1, stream=a)
        event = stream.record_event()
        assert array.numpy()[0] == rounds + 1
        event.synchronize()
        del array, node
        gc.collect(0)
        rounds += 1
    device.synchronize()
    return rounds


def test_other_threads_go_on_while_one_captures(device, in_thread):
    stop, array = threading.Event(), ready(device)
    others = [in_thread(churn, device, stop) for _ in range(2)]
    stream = ab.Stream(device)
    try:
        for _ in range(20):
            with ab.capture(stream) as graph:
                for value in range(10):
                    ab.fill(array, value)
                    with ab.fork(2) as (a, b):
                        made = ab.zeros(100, stream=a)
                        ab.copy(made[:50], made[50:], stream=b)
                        del made
            assert kinds(graph).count("fill") == 20
            graph.launch(stream)
            assert_all(array, 9)
    finally:
        stop.set()
    assert all(other.result(TIMEOUT) > 0 for other in others)


def test_a_cycle_with_streams_and_arrays_is_collected_during_a_capture(device, in_thread):
    class Node:
        pass

    def leave():
        node = Node()
        node.itself = node
        node.stream = ab.Stream(device)
        node.array = ab.ones(100, stream=node.stream)
        node.event = node.stream.record_event()
        with ab.capture(node.stream) as node.graph:
            ab.fill(node.array, 2)

    stream, array = ab.Stream(device), ready(device)
    in_thread(leave).result(TIMEOUT)
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        gc.collect()
        ab.fill(array, 2)
    assert edges(graph) == {(0, 1)}
    graph.launch(stream)
    assert_all(array, 2)


def test_threads_launch_one_graph(device, in_threads):
    array, result = ready(device), ready(device)
    with ab.capture(ab.Stream(device)) as graph, ab.fork(2) as (a, b):
        ab.fill(array[:4], 7, stream=a)
        ab.fill(array[4:], 7, stream=b)
        temporary = ab.zeros(8, stream=a)
        ab.copy(temporary, array, stream=a)
        ab.copy(result, temporary, stream=b)
        del temporary

    def launch(_):
        stream = ab.Stream(device)
        for _ in range(50):
            graph.launch(stream)
        stream.synchronize()

    in_threads(THREADS, launch)
    assert graph.replays == 50 * THREADS
    assert_all(result, 7)


def test_threads_launch_while_another_updates(device, in_threads):
    arrays = [ready(device) for _ in range(2)]

    def capture(array, count):
        with ab.capture(ab.Stream(device)) as graph:
            for _ in range(count):
                ab.fill(array, 7)
        return graph

    graph = capture(arrays[0], 1)
    others = [capture(array, count) for array in arrays for count in (1, 2)]

    def work(number):
        stream = ab.Stream(device)
        for turn in range(40):
            if number:
                graph.launch(stream)
            else:
                graph.update(others[turn % len(others)])
        stream.synchronize()

    in_threads(3, work)
    assert graph.replays == 80


def test_the_thread_that_began_a_capture_may_end_before_the_replays(device, in_thread):
    array = ready(device)

    def capture():
        with ab.capture(ab.Stream(device)) as graph:
            ab.fill(array, 7)
        return graph

    graph = in_thread(capture).result(TIMEOUT)
    graph.launch()
    assert_all(array, 7)


def test_a_capture_that_another_thread_ends(device, in_thread):
    """As a generator may that is closed by the collector of another thread."""
    stream, array, block = ab.Stream(device), ready(device), None
    block = ab.capture(stream)

    def begin():
        graph = block.__enter__()
        ab.fill(array, 7, stream=stream)
        return graph

    graph = in_thread(begin).result(TIMEOUT)
    assert stream.is_capturing
    block.__exit__(None, None, None)
    assert not stream.is_capturing
    graph.launch(stream)
    assert_all(array, 7)
