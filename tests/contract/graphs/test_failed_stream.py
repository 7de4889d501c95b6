"""A graph launched on a stream that has failed, while another replay of it runs, and its replays after that."""

import threading

import pytest

import anabranch as ab

from ..arrays import TIMEOUT

pytestmark = pytest.mark.usefixtures("failures_forgotten")

FAILURE = (ab.KernelError, ab.DriverError)


@pytest.fixture
def failed(device):
    """A stream that has failed."""
    stream = ab.Stream(device)
    ab.testing.fail(stream)
    with pytest.raises(FAILURE):
        stream.synchronize()
    return stream


class Held:
    """A function that the first replay is held in."""

    def __init__(self):
        self.entered, self.leave = threading.Event(), threading.Event()

    def __call__(self):
        self.entered.set()
        assert self.leave.wait(TIMEOUT)

    def skipped_by(self, graph, failed):
        """Launch the graph on a failed stream while it is held, and see that replay end."""
        assert self.entered.wait(TIMEOUT)
        graph.launch(failed)
        with pytest.raises(FAILURE):
            failed.synchronize()


def test_the_replay_that_runs_goes_on(device, failed):
    stream, held, calls = ab.Stream(device), Held(), []
    with ab.capture(stream) as graph:
        stream.submit(held)
        stream.submit(calls.append, "after")
    graph.launch(stream)
    held.skipped_by(graph, failed)
    held.leave.set()
    stream.synchronize()
    assert calls == ["after"]


def test_the_replay_that_runs_and_has_failed_stays_so(device, failed):
    stream, side, held, calls = ab.Stream(device), ab.Stream(device), Held(), []

    def fails():
        assert held.entered.wait(TIMEOUT)
        raise ZeroDivisionError

    with ab.capture(stream) as graph:
        side.wait_stream(stream)
        side.submit(held)
        stream.submit(fails)
        skipped = stream.submit(calls.append, "after")
        side.wait_stream(stream)
        side.submit(calls.append, "after both")
    graph.launch(stream)
    with pytest.raises(FAILURE, match="fails"):
        skipped.result(TIMEOUT)
    held.skipped_by(graph, failed)
    held.leave.set()
    with pytest.raises(FAILURE, match="fails"):
        stream.synchronize()
    assert calls == []


@pytest.mark.numba
@pytest.mark.thread_unsafe(reason="work of another thread counts as what the failed one came after")
def test_a_later_replay_does_not_fail_with_the_last_one(device, failed):
    x = ab.zeros(4, device=device)
    stream, other = ab.Stream(device), ab.Stream(device)
    with ab.capture(stream) as graph:
        x += 3
    graph.launch(stream)
    stream.synchronize()
    graph.launch(failed)
    with pytest.raises(FAILURE):
        failed.synchronize()
    ab.fill(x, 1, stream=other)  # what the failed one has left
    graph.launch(other)
    other.synchronize()
    assert x.tolist() == [4] * 4


def test_a_later_replay_comes_after_those_before_the_failed_one(device, failed):
    stream, other, held, calls = ab.Stream(device), ab.Stream(device), Held(), []
    with ab.capture(stream) as graph:
        stream.submit(held)
        stream.submit(calls.append, "replay")
    graph.launch(stream)
    held.skipped_by(graph, failed)
    graph.launch(other)
    assert not other.query()
    held.leave.set()
    other.synchronize()
    assert calls == ["replay"] * 2


@pytest.mark.numba
@pytest.mark.thread_unsafe(reason="work of another thread counts as what the failed one came after")
def test_a_graphed_function_goes_on_with_other_streams_and_arrays(device, failed):
    @ab.graphed
    def twice(x):
        return x + x

    with ab.Stream(device):
        assert twice(ab.ones(4, device=device)).tolist() == [2] * 4
    x = ab.ones(4, device=device)
    x.numpy()
    with failed:
        twice(x)
    with pytest.raises(FAILURE):
        failed.synchronize()
    with ab.Stream(device) as stream:
        assert twice(ab.full(4, 2, device=device)).tolist() == [4] * 4
        assert twice(ab.full(4, 3, device=device)).tolist() == [6] * 4
    stream.synchronize()
