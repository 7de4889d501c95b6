"""Host functions of graphs that end in unusual ways."""

import re
import sys
import threading

import pytest

import anabranch as ab

from ..arrays import TIMEOUT

pytestmark = pytest.mark.usefixtures("failures_forgotten")


class UntellableError(Exception):
    """Cannot be told."""

    def __str__(self):
        raise RuntimeError("no text")


class Misnamed:
    """A callable whose name is not text, or cannot be had."""

    def __init__(self, name, error):
        self.called = name
        self.error = error

    def __getattr__(self, attribute):
        """Give that name."""
        if attribute != "__qualname__":
            raise AttributeError(attribute)
        if self.called is RuntimeError:
            # Made here: one that stays keeps the test's frame, and with it the stream that failed.
            raise RuntimeError("no name")
        return self.called

    def __call__(self):
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error
        return 3


NAMES = {"number": 7, "none": None, "raises": RuntimeError}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_function_whose_name_cannot_be_had_goes_by_its_type(name, stream):
    with ab.capture(stream) as graph:
        future = stream.submit(Misnamed(name, None))
        failing = stream.submit(Misnamed(name, KeyError("mine")))
    assert [node.name for node in graph.nodes] == ["Misnamed"] * 2
    graph.launch(stream)
    assert future.result(TIMEOUT) == 3
    assert isinstance(failing.exception(TIMEOUT), KeyError)
    with pytest.raises(ab.KernelError, match="the host function 'Misnamed' of a graph raised KeyError"):
        stream.synchronize()


TEXTS = {
    "untellable": (UntellableError(), "raised UntellableError"),
    "surrogate": (ValueError("a lone \udcff"), "raised ValueError: a lone \udcff"),
}


@pytest.mark.parametrize(("error", "text"), TEXTS.values(), ids=TEXTS)
def test_whatever_a_function_raises_fails_the_stream(error, text, stream, other):
    def body():
        raise error

    with ab.capture(stream) as graph:
        future = stream.submit(body)
    graph.launch(stream)
    other.wait_stream(stream)
    assert future.exception(TIMEOUT) is error
    for observer in stream, other:
        with pytest.raises(ab.KernelError) as caught:
            observer.synchronize()
        assert text in str(caught.value)


def test_a_future_that_somebody_else_settles_does_not_hold_the_stream(device):
    stream, calls = ab.Stream(device), []
    with ab.capture(stream) as graph:
        future = stream.submit(calls.append, 1)
    future.set_result("theirs")
    graph.launch(stream)
    stream.synchronize()
    assert (future.result(), calls) == ("theirs", [1])


@pytest.mark.thread_unsafe(reason="changes what ends of threads call")
def test_a_callback_that_ends_its_thread_does_not_hold_the_stream(device, monkeypatch):
    stream, ended = ab.Stream(device), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: ended.set())
    with ab.capture(stream) as graph:
        future = stream.submit(int)
    future.add_done_callback(lambda _: sys.exit())
    graph.launch(stream)
    assert ended.wait(TIMEOUT)
    assert [stream.submit(int, number).result(TIMEOUT) for number in range(20)] == list(range(20))


def test_the_error_of_a_graph_says_where_its_function_raised(stream):
    def body():
        return {}["loss"]

    with ab.capture(stream) as graph:
        stream.submit(body)
    graph.launch(stream)
    where = rf"raised KeyError: 'loss' \({re.escape(__file__)}:{body.__code__.co_firstlineno + 1}, in body\)"
    with pytest.raises(ab.KernelError, match=where):
        stream.synchronize()
