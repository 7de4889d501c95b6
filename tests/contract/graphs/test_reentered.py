"""Graphs that are changed or closed where something else is done with them: in their capture, by an argument."""

import contextlib
import pickle
import threading

import pytest

import anabranch as ab

from ..arrays import TIMEOUT
from .replays import assert_all, kinds, replays_to


@ab.kernel
def put(i, value, y: ab.Out):
    y[i] = value


class Meddling(float):
    """A number that does something when it is converted, which packing does."""

    def __new__(cls, value, meddle):
        """Keep what it does."""
        made = super().__new__(cls, value)
        made.meddle = meddle
        return made

    def __float__(self):
        """Do it."""
        self.meddle()
        return 0.0


def putting(array, stream, count=1):
    with ab.capture(stream) as graph:
        for _ in range(count):
            ab.launch(put, 8, 2.0, array)
    return graph


def filling(array, value):
    with ab.capture(ab.Stream(array.device)) as graph:
        ab.fill(array, value)
    return graph


@pytest.mark.numba
def test_an_argument_that_closes_the_graph(stream, array):
    graph = putting(array, stream)
    with pytest.raises(ab.ClosedError):
        graph.set_args(graph.nodes[0], Meddling(1, graph.close), array)
    assert graph.closed
    with pytest.raises(ab.ClosedError):
        graph.launch(stream)
    assert_all(array, 0)


@pytest.mark.numba
def test_arguments_that_close_each_others_graphs(device, array):
    graphs = [putting(array, ab.Stream(device)) for _ in range(2)]
    both = threading.Barrier(2)

    def change(graph, other):
        def close():
            both.wait(TIMEOUT)
            other.close()

        with contextlib.suppress(ab.ClosedError):
            graph.set_args(graph.nodes[0], Meddling(1, close), array)

    threads = [threading.Thread(target=change, args=pair, daemon=True) for pair in (graphs, graphs[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    assert all(graph.closed for graph in graphs)


@pytest.mark.numba
def test_an_argument_that_makes_the_graph_another(stream, array):
    graph, small = putting(array, stream, 200), filling(array, 5)
    with pytest.raises(ab.Error, match="was changed"):
        graph.set_args(graph.nodes[150], Meddling(1, lambda: graph.update(small)), array)
    assert kinds(graph) == ["fill"]
    replays_to(graph, stream, [array], 5)


@pytest.mark.numba
def test_an_argument_that_gives_the_graph_other_arguments(stream, array):
    graph = putting(array, stream)
    (node,) = graph.nodes
    with pytest.raises(ab.Error, match="was changed"):
        graph.set_args(node, Meddling(1, lambda: graph.set_args(node, 3.0, array)), array)
    replays_to(graph, stream, [array], 3)
    graph.set_args(node, 4.0, array)
    replays_to(graph, stream, [array], 4)


def test_a_graph_in_another_is_what_it_was_when_it_was_launched(stream, array):
    calls = []
    with ab.capture(stream) as inner:
        stream.submit(calls.append, 1)
        ab.fill(array, 7)
    other = filling(array, 5)
    with ab.capture(stream) as outer:
        inner.launch()
        inner.update(other)
    for count in 1, 2:
        replays_to(outer, stream, [array], 7)
        assert len(calls) == count
    replays_to(inner, stream, [array], 5)


def test_a_graph_in_another_may_be_closed_before_that_is_captured(stream, array):
    with ab.capture(stream) as inner:
        ab.fill(array, 7)
    with ab.capture(stream) as outer:
        inner.launch()
        inner.close()
    assert inner.closed
    replays_to(outer, stream, [array], 7)


def refuses_all(graph):
    for use in (
        graph.launch,
        graph.instance,
        graph.to_dot,
        lambda: graph.nodes,
        lambda: graph.set_args(None),
        lambda: graph.update(graph),
    ):
        with pytest.raises(ab.ClosedError):
            use()
    return True


def test_a_graph_that_is_closed_in_its_capture_stays_closed(stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        graph.close()
        assert graph.closed
        assert refuses_all(graph)
        ab.fill(array, 2)
        graph.close()
    assert not stream.is_capturing
    assert graph.closed
    assert repr(graph).endswith("closed>")
    assert refuses_all(graph)
    ab.fill(array, 3, stream=stream)
    assert_all(array, 3)


def test_a_graph_that_was_not_captured_is_closed(stream):
    with pytest.raises(KeyError), ab.capture(stream) as graph:
        raise KeyError
    graph.close()
    assert graph.closed
    assert refuses_all(graph)


def test_a_graph_that_was_closed_and_then_not_captured_is_closed(stream):
    def close():
        graph.close()
        stream.synchronize()

    with pytest.raises(ab.CaptureError), ab.capture(stream) as graph:
        close()
    assert refuses_all(graph)


def test_a_graph_that_was_not_captured_takes_no_arguments(stream):
    with pytest.raises(KeyError), ab.capture(stream) as graph:
        raise KeyError
    for use in (graph.launch, lambda: graph.set_args(None), lambda: graph.update(graph)):
        with pytest.raises(ab.CaptureError, match="was not captured"):
            use()
    assert not graph.closed


def test_a_graph_says_that_it_lives_in_this_process(array):
    graph = filling(array, 1)
    for _ in range(2):
        with pytest.raises(TypeError, match="lives in this process; ") as caught:
            pickle.dumps(graph)
        assert str(caught.value).startswith(repr(graph))
        graph.close()


def test_the_device_of_a_graph(device, array):
    graph = filling(array, 1)
    assert graph.device is device
    assert graph.instance().device is device
    graph.close()
    assert graph.device is device
    assert ab.Graph.device.__doc__
