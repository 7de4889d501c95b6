"""Captures that end without a graph: what they let go of, and when."""

import gc
import threading
import weakref

import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import comes
from .replays import assert_all, kinds


class Noticed:
    """A function that does something when it goes."""

    def __init__(self, goes=lambda: None):
        self.goes = goes

    def __call__(self):
        pass

    def __del__(self):
        self.goes()


def abandoned(stream, record, *args):
    """Capture what a function does, and raise an exception."""

    def capture():
        with ab.capture(stream):
            record(*args)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture()


def forget_recorders(device):
    """Capture more streams than a thread remembers."""
    for _ in range(9):
        with ab.capture(ab.Stream(device)):
            pass


def test_functions_go_with_the_capture(device):
    stream, gone = ab.Stream(device), threading.Event()
    abandoned(stream, lambda: stream.submit(Noticed(gone.set)))
    gc.collect()
    assert comes(gone)


def test_arguments_of_functions_go_with_the_capture(device):
    stream, argument = ab.Stream(device), Noticed()
    reference = weakref.ref(argument)
    abandoned(stream, stream.submit, id, argument)
    del argument
    gc.collect()
    assert reference() is None


def test_what_goes_with_the_capture_may_use_its_stream(device):
    stream, array = ab.Stream(device), ready(device)
    abandoned(stream, lambda: stream.submit(Noticed(lambda: ab.fill(array, 1, stream=stream))))
    gc.collect()
    forget_recorders(device)
    with ab.capture(stream) as graph:
        pass
    assert kinds(graph) == []
    assert_all(array, 1)


def test_graphs_go_with_the_capture(device):
    """The last that has a graph, and with that the last that has a stream, was the record of another stream."""
    stream, other = ab.Stream(device), ab.Stream(device)
    array = ab.zeros(8, stream=other)
    with ab.capture(stream) as inner:
        ab.fill(array, 3)
    inner.launch(other)
    other.synchronize()
    abandoned(stream, inner.launch)
    forget_recorders(device)
    del array, inner, other
    gc.collect()
    del stream
    assert ab.Stream(device).query()


def test_the_process_ends_with_the_recorder_of_such_a_capture(device, run_python):
    script = f"""
        import anabranch as ab

        stream = ab.Stream({device.alias!r})
        try:
            with ab.capture(stream):
                stream.submit(lambda: None)
                raise ValueError
        except ValueError:
            pass
        with ab.capture(stream):
            pass
        print("end")
    """
    assert run_python(script) == "end\n"


def test_memory_goes_back_after_what_ran_at_once(device):
    stream, other = ab.Stream(device), ab.Stream(device)

    def record():
        array = ab.empty(1000)
        ab.fill(array, 9, stream=other)  # takes no part, so it runs at once

    gate = ab.testing.Gate(other)
    abandoned(stream, record)
    later = [ab.full(1000, 1, "float32", stream=stream) for _ in range(8)]
    stream.synchronize()
    gate.open()
    other.synchronize()
    for each in later:
        assert_all(each, 1)
