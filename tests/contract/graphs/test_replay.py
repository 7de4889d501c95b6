"""Launches of graphs: queued, from several streams, and refused."""

import threading

import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT
from .replays import assert_all, give, replays_to


def filling(array, value=7):
    """Capture a fill; gives the graph."""
    with ab.capture(ab.Stream(array.device)) as graph:
        ab.fill(array, value)
    return graph


def copying(target, source):
    with ab.capture(ab.Stream(target.device)) as graph:
        ab.copy(target, source)
    return graph


def test_a_launch_returns_at_once_and_nothing(stream, array):
    graph = filling(array)
    with ab.testing.Gate(stream):
        assert graph.launch(stream) is None
        assert not stream.query()
    stream.synchronize()
    assert_all(array, 7)


def test_a_launch_goes_to_the_current_stream(stream, array):
    graph = filling(array)
    with stream, ab.testing.Gate(stream):
        graph.launch()
        assert not stream.query()


def test_each_replay_finds_what_is_in_its_inputs_then(device):
    stream, source, target = ab.Stream(device), ready(device), ready(device)
    graph = copying(target, source)
    for value in 1, 2, 3:
        give(source, value)
        replays_to(graph, stream, [target], value)
    assert (graph.replays, graph.instantiations) == (3, 1)


def test_replays_queue_up_behind_a_gate(device):
    stream, array, seen = ab.Stream(device), ready(device), []
    with ab.capture(stream) as graph:
        stream.submit(lambda: seen.append(array.numpy()[0]), reads=[array])
    with ab.testing.Gate(stream):
        for value in range(5):
            ab.fill(array, value, stream=stream)
            graph.launch(stream)
        assert seen == []
    stream.synchronize()
    assert seen == [0, 1, 2, 3, 4]


def test_a_replay_is_one_operation_of_its_stream(stream, x, y, z):
    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        ab.copy(y, x, stream=a)
        ab.copy(z, x, stream=b)
    with ab.hazards("off"):
        ab.fill(x, 3, stream=stream)
        graph.launch(stream)
        ab.fill(x, 4, stream=stream)
    assert_all(y, 3)
    assert_all(z, 3)
    assert_all(x, 4)


def test_replays_on_two_streams_do_not_overlap(a, b, x, y):
    graph = copying(y, x)
    with ab.testing.Gate(a), ab.hazards("off"):
        graph.launch(a)
        graph.launch(b)
        assert not b.query()
    b.synchronize()


def test_replays_of_instances_overlap(device):
    a, b, meet = ab.Stream(device), ab.Stream(device), threading.Barrier(2)
    with ab.capture(a) as graph:
        a.submit(meet.wait, TIMEOUT)
    other = graph.instance()
    graph.launch(a)
    other.launch(b)
    a.synchronize()
    b.synchronize()
    assert (graph.replays, other.replays) == (1, 1)


def test_replays_of_one_graph_never_call_a_function_twice_at_once(device, in_threads):
    active, most, lock = [0], [0], threading.Lock()

    def call():
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        with lock:
            active[0] -= 1

    stream = ab.Stream(device)
    with ab.capture(stream) as graph:
        stream.submit(call)

    def launch(_):
        own = ab.Stream(device)
        for _ in range(10):
            graph.launch(own)
        own.synchronize()

    in_threads(4, launch)
    assert most == [1]
    assert graph.replays == 40


def test_an_instance_waits_for_the_memory_that_both_write(a, b, array):
    graph = filling(array)
    other = graph.instance()
    with ab.testing.Gate(a):
        graph.launch(a)
        other.launch(b)
        assert not b.query()
    b.synchronize()


def test_an_instance_has_nodes_and_counts_of_its_own(array):
    graph = filling(array)
    graph.launch()
    other = graph.instance()
    assert (other.replays, other.instantiations, graph.replays) == (0, 1, 1)
    assert [node.kind for node in other.nodes] == ["fill"]
    graph.close()
    give(array, 1)
    replays_to(other, None, [array], 7)


@pytest.mark.thread_unsafe(reason="a trace is of all threads")
def test_a_replay_is_traced_as_one_operation(stream, array):
    with ab.capture(stream) as graph:
        for value in range(3):
            ab.fill(array, value)
    with ab.trace() as trace:
        graph.launch(stream)
    (operation,) = trace.operations
    assert (operation.kind, operation.stream, operation.file) == ("graph", stream, __file__)


@pytest.mark.thread_unsafe(reason="a trace is of all threads")
def test_a_capture_leaves_nothing_in_a_trace(stream, array):
    with ab.trace() as trace, ab.capture(stream), ab.fork(2) as (a, b):
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)
        b.record_event()
        made = ab.zeros(4, stream=a)
        a.submit(int)
        del made
    assert [operation.kind for operation in trace.operations] == []


def test_a_replay_is_timed_by_events(device, stream, array):
    graph = filling(array)
    begin, end = (ab.Event(enable_timing=True, device=device) for _ in range(2))
    begin.record(stream)
    graph.launch(stream)
    end.record(stream)
    assert begin.elapsed_time(end) >= 0


# Refused


def test_a_graph_that_is_being_captured_cannot_be_launched(stream, array):
    with ab.capture(stream) as graph:
        ab.fill(array, 7)
        for use in graph.launch, graph.instance, lambda: graph.nodes, lambda: graph.replays, graph.to_dot:
            with pytest.raises(ab.CaptureError, match="captured"):
                use()
    replays_to(graph, stream, [array], 7)


def test_a_graph_that_was_not_captured_cannot_be_launched(stream):
    with pytest.raises(ZeroDivisionError), ab.capture(stream) as graph:
        raise ZeroDivisionError
    for use in graph.launch, graph.instance, lambda: graph.nodes, lambda: graph.edges, graph.to_dot:
        with pytest.raises(ab.CaptureError):
            use()
    assert "not captured" in repr(graph)
    graph.close()


def test_a_closed_graph_cannot_be_used(stream, array):
    graph, other = filling(array), filling(array)
    node = graph.nodes[0]
    assert not graph.closed
    graph.close()
    graph.close()
    assert graph.closed
    assert "closed" in repr(graph)
    uses = [
        lambda: graph.launch(stream),
        graph.instance,
        graph.to_dot,
        lambda: graph.nodes,
        lambda: graph.edges,
        lambda: graph.replays,
        lambda: graph.instantiations,
        lambda: graph.set_args(node),
        lambda: graph.update(other),
        lambda: other.update(graph),
    ]
    for use in uses:
        with pytest.raises(ab.ClosedError):
            use()


def test_replays_of_a_graph_that_is_closed_complete(stream, array):
    graph = filling(array)
    with ab.testing.Gate(stream):
        graph.launch(stream)
        graph.close()
    stream.synchronize()
    assert_all(array, 7)


def test_a_stream_of_another_device_is_refused(device, other_device, array):
    graph = filling(array)
    with pytest.raises(ab.DeviceError, match=device.alias):
        graph.launch(ab.Stream(other_device))
    assert graph.replays == 0
    assert_all(array, 0)


def test_what_is_no_stream_is_refused(device):
    graph = filling(ready(device))
    for wrong in 1, "s":
        with pytest.raises(TypeError):
            graph.launch(wrong)
    closed = ab.Stream(device)
    closed.close()
    with pytest.raises(ab.ClosedError):
        graph.launch(closed)


def test_behind_a_failure_nothing_of_the_graph_runs(device, failures_forgotten):
    stream, array, calls = ab.Stream(device), ready(device), []
    with ab.capture(stream) as graph:
        ab.fill(array, 7)
        future = stream.submit(calls.append, 1)
    other = ab.Stream(device)
    with ab.testing.Gate(other):
        ab.testing.fail(other)
        graph.launch(other)
    with pytest.raises((ab.KernelError, ab.DriverError)):
        other.synchronize()
    with pytest.raises((ab.KernelError, ab.DriverError)):
        future.result(TIMEOUT)
    assert calls == []
    assert stream.query()


def test_a_failure_within_a_branch_fails_the_replay(device, failures_forgotten):
    stream, array = ab.Stream(device), ready(device)

    def fail():
        raise ValueError

    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        a.submit(fail)
        ab.fill(array, 7, stream=b)
    graph.launch(stream)
    with pytest.raises(ab.KernelError):
        stream.synchronize()
