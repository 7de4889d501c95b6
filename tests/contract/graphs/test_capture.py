"""`ab.capture`: which stream is captured, and that nothing runs."""

import pytest

import anabranch as ab

from ..accesses import ready
from .replays import SIZE, assert_all, kinds, replays_to


def test_nothing_runs_until_the_launch(stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array, 7)
    stream.synchronize()
    assert_all(array, 0)
    replays_to(graph, stream, [array], 7)


def test_nothing_has_run_while_the_block_is_open(stream, array):
    with ab.capture(stream):
        ab.fill(array, 7)
        looked = array[:0]
        assert looked.size == 0
    assert_all(array, 0)


def test_the_stream_is_current_in_the_block_and_no_longer(device):
    stream, before = ab.Stream(device), ab.current_stream()
    with ab.capture(stream):
        assert ab.current_stream() == stream
    assert ab.current_stream() == before


def test_a_stream_is_capturing_in_the_block_and_no_longer(stream, other):
    assert not stream.is_capturing
    with ab.capture(stream):
        assert stream.is_capturing
        assert not other.is_capturing
    assert not stream.is_capturing


def test_a_stream_that_waits_for_captured_work_is_capturing(stream, other):
    with ab.capture(stream):
        other.wait_stream(stream)
        assert other.is_capturing
    assert not other.is_capturing


def test_streams_are_usable_afterwards(enqueue, stream, other, array):
    with ab.capture(stream):
        other.wait_stream(stream)
        ab.fill(array, 1, stream=other)
    for one in stream, other:
        enqueue(one)
        ab.fill(array, 3, stream=one)
        one.synchronize()
        assert one.query()
    assert_all(array, 3)


def test_what_was_enqueued_before_is_no_part_of_the_graph(stream, array):
    ab.fill(array, 3, stream=stream)
    with ab.capture(stream) as graph:
        pass
    assert_all(array, 3)
    assert graph.nodes == []


def test_an_empty_graph_can_be_launched(stream):
    with ab.capture(stream) as graph:
        pass
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert graph.replays == 3


def test_a_capture_behind_a_gate_does_not_wait_for_it(stream, array):
    with ab.testing.Gate(stream):
        with ab.capture(stream) as graph:
            ab.fill(array, 7)
        assert kinds(graph) == ["fill"]
    stream.synchronize()
    assert_all(array, 0)


def test_the_current_stream_is_captured(device):
    stream, array = ab.Stream(device), ready(device)
    with stream, ab.capture() as graph:
        assert ab.current_stream() == stream
        assert stream.is_capturing
        ab.fill(array, 7)
    replays_to(graph, stream, [array], 7)


def test_where_the_legacy_stream_is_current_a_stream_of_its_own_is_captured(device):
    array, legacy = ready(device), ab.legacy_stream(device)
    with legacy, ab.capture() as graph:
        assert ab.current_stream() != legacy
        assert ab.current_stream().is_capturing
        ab.fill(array, 7)
    assert graph.device is device
    replays_to(graph, None, [array], 7)


def test_the_per_thread_stream_can_be_captured(device):
    array, stream = ready(device), ab.per_thread_stream(device)
    with stream, ab.capture() as graph:
        assert ab.current_stream() == stream
        ab.fill(array, 7)
    stream.synchronize()
    assert_all(array, 0)
    replays_to(graph, stream, [array], 7)


def test_a_blocking_stream_can_be_captured_while_the_legacy_stream_is_at_work(device):
    stream, array = ab.Stream(device, non_blocking=False), ready(device)
    with ab.testing.Gate(ab.legacy_stream(device)):
        with ab.capture(stream) as graph:
            ab.fill(array, 7)
        assert kinds(graph) == ["fill"]
    replays_to(graph, stream, [array], 7)


def test_a_device_captures_a_stream_of_its_own(device, other_device):
    array, before = ready(other_device), ab.current_stream(other_device)
    for given in other_device, other_device.alias:
        with ab.capture(device=given) as graph:
            assert ab.current_device() is other_device
            assert ab.current_stream() != before
            ab.fill(array, 7)
        assert graph.device is other_device
    assert ab.current_device() is device
    replays_to(graph, None, [array], 7)


def test_a_stream_and_another_device_do_not_go_together(device, other_device):
    with pytest.raises(ValueError, match=other_device.alias):
        ab.capture(ab.Stream(device), device=other_device)


def test_the_legacy_stream_cannot_be_captured(device):
    with pytest.raises(ab.CaptureError, match="legacy"):
        ab.capture(ab.legacy_stream(device)).__enter__()


def test_a_capture_in_a_capture_is_refused(stream, other):
    for inner in stream, other:
        with pytest.raises(ab.CaptureError), ab.capture(stream), ab.capture(inner):
            raise AssertionError
        assert not stream.is_capturing
        assert not other.is_capturing


def test_a_stream_that_another_thread_captures_cannot_be_captured(in_thread, stream, array):
    def capture():
        with pytest.raises(ab.CaptureError, match="another capture"), ab.capture(stream):
            raise AssertionError

    with ab.capture(stream) as graph:
        in_thread(capture).result(20)
        ab.fill(array, 7)
    replays_to(graph, stream, [array], 7)


def test_a_stream_without_a_wait_runs_at_once(device):
    stream, other, array, captured = ab.Stream(device), ab.Stream(device), ready(device), ready(device)
    with ab.capture(stream) as graph:
        ab.fill(captured, 1)
        ab.fill(array, 7, stream=other)
        other.synchronize()
        assert_all(array, 7)
    assert kinds(graph) == ["fill"]


def test_a_stream_that_waited_before_the_capture_is_no_part_of_it(stream, other, array):
    other.wait_stream(stream)
    with ab.capture(stream) as graph:
        ab.fill(array, 7, stream=other)
        other.synchronize()
    assert graph.nodes == []
    assert_all(array, 7)


def test_a_closed_stream_cannot_be_captured(stream):
    stream.close()
    with pytest.raises(ab.ClosedError), ab.capture(stream):
        raise AssertionError


def test_a_stream_that_failed_can_be_captured_but_runs_nothing(device, failures_forgotten):
    stream, array = ab.Stream(device), ready(device)
    ab.testing.fail(stream)
    with ab.capture(stream) as graph:
        ab.fill(array, 7)
    replays_to(graph, ab.Stream(device), [array], 7)


def test_two_captures_of_one_stream_are_two_graphs(stream, array):
    graphs = []
    for value in 1, 2:
        with ab.capture(stream) as graph:
            ab.fill(array, value)
        graphs.append(graph)
    replays_to(graphs[1], stream, [array], 2)
    replays_to(graphs[0], stream, [array], 1)


def test_one_object_captures_again(stream, array):
    again = ab.capture(stream)
    with again as one:
        ab.fill(array, 1)
    with again as other:
        ab.fill(array, 2)
    replays_to(one, stream, [array], 1)
    replays_to(other, stream, [array], 2)


def test_what_a_capture_is_given_is_checked(device):
    for wrong in 1, "s", ab.Event(device=device):
        with pytest.raises(TypeError):
            ab.capture(wrong)
    with pytest.raises(ab.DeviceError):
        ab.capture(device="cpu:99")


def test_a_graph_is_not_made_by_hand():
    with pytest.raises(TypeError, match="capture"):
        ab.Graph()


def test_a_graph_says_what_it_is(device):
    stream, array = ab.Stream(device), ready(device, SIZE)
    with ab.capture(stream) as graph:
        assert "captured" in repr(graph)
        ab.fill(array, 1)
    assert repr(graph) == f"<Graph of 1 node on {device.alias}, 0 replays>"
    graph.launch(stream)
    assert repr(graph) == f"<Graph of 1 node on {device.alias}, 1 replay>"
    (node,) = graph.nodes
    assert (node.kind, node.name, node.index, node.device) == ("fill", "fill", 0, device)
    assert "fill" in repr(node)


def test_a_graph_is_drawn_in_the_language_of_graphviz(stream, array):
    def odd():
        """Be called what needs quoting."""

    odd.__qualname__ = 'a "name"\\'
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        stream.submit(odd)
    text = graph.to_dot()
    assert text.startswith("digraph")
    assert "n0 -> n1" in text
    assert r'label="a \"name\"\\"' in text
