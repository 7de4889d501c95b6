"""What `__new__` alone makes, as copies and mocks may call it: an object like others, or one that refuses."""

import pytest

import anabranch as ab
from anabranch.testing import Gate


def test_a_stream_is_whole(device):
    with device:
        stream = ab.Stream.__new__(ab.Stream, name="whole")
    assert stream.device is device
    assert stream.name == "whole"
    assert ab.zeros(3, stream=stream).numpy().tolist() == [0, 0, 0]
    stream.close()


def test_an_event_is_whole(device):
    event = ab.Event.__new__(ab.Event, device=device)
    event.record()
    event.synchronize()
    assert event.device is device
    assert event.query()


def test_a_gate_holds_a_stream(device):
    with pytest.raises(TypeError):
        Gate.__new__(Gate)
    stream = ab.Stream(device)
    with Gate.__new__(Gate, stream) as gate:
        assert not stream.query()
        assert not gate.is_open
    stream.synchronize()


def test_a_graph_says_that_it_was_never_made():
    graph = ab.Graph.__new__(ab.Graph)
    assert repr(graph) == "<Graph on no device, was never made>"
    assert graph.device is None
    assert not graph.closed
    uses = (
        graph.launch, graph.instance, graph.to_dot, lambda: graph.nodes, lambda: graph.edges, lambda: graph.replays,
        lambda: graph.update(graph), lambda: graph.set_args(0, 1), lambda: graph.instantiations,
    )  # fmt: skip
    for use in uses:
        with pytest.raises(ab.CaptureError, match="was never made"):
            use()
    graph.close()
    assert graph.closed


def test_an_array_was_closed():
    array = ab.Array.__new__(ab.Array)
    assert array.closed
    assert repr(array) == "<Array of nothing, closed>"
    array.close()
    uses = (
        array.numpy, lambda: array[0], lambda: array.shape, lambda: ab.fill(array, 1), lambda: ab.array(array),
        lambda: array._interface(False),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(ab.ClosedError):
            use()
