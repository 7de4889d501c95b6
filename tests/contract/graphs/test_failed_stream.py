"""A graph launched on a stream that has failed, while another replay of it runs."""

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
        self.leave.set()


def test_the_replay_that_runs_goes_on(device, failed):
    stream, held, calls = ab.Stream(device), Held(), []
    with ab.capture(stream) as graph:
        stream.submit(held)
        stream.submit(calls.append, "after")
    graph.launch(stream)
    held.skipped_by(graph, failed)
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
    with pytest.raises(FAILURE, match="fails"):
        stream.synchronize()
    assert calls == []
