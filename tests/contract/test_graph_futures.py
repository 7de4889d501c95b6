"""Futures of host functions of graphs that nobody will ever call."""

import concurrent.futures
import gc

import pytest

import anabranch as ab


@pytest.fixture
def stream(device):
    return ab.Stream(device)


def submitted(stream):
    with ab.capture(stream) as graph:
        future = stream.submit(lambda: 5)
    return graph, future


def assert_cancelled(future):
    gc.collect()
    concurrent.futures.wait([future], 20)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)


@pytest.mark.parametrize("error", [KeyError, ab.CaptureError])
def test_a_capture_that_fails_cancels_them(stream, error):
    futures = []

    def fail():
        futures.append(stream.submit(int))
        if error is KeyError:
            raise KeyError
        stream.synchronize()

    with pytest.raises(error), ab.capture(stream):
        fail()
    assert_cancelled(*futures)


@pytest.mark.parametrize("launched", [False, True])
def test_a_graph_that_goes_cancels_those_of_no_replay(stream, launched):
    graph, future = submitted(stream)
    with ab.testing.Gate(stream):
        if launched:
            graph.launch(stream)
        graph.close()
        del graph
        gc.collect()
        assert not (launched and future.done())
    if launched:
        assert future.result(20) == 5
    else:
        assert_cancelled(future)


def test_a_graph_that_becomes_another_cancels_them(stream):
    graph, future = submitted(stream)
    with ab.capture(stream) as other:
        pass
    graph.update(other)
    assert_cancelled(future)


def test_an_instance_calls_them_when_the_graph_is_gone(stream):
    graph, future = submitted(stream)
    other = graph.instance()
    del graph
    gc.collect()
    assert not future.done()
    other.launch(stream)
    assert future.result(20) == 5
