"""Graphed functions that cannot be captured, and errors."""

import weakref

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all
from .test_graphed import Counted, given

# What cannot be captured


def look(x, y):
    ab.copy(y, x)
    ab.fill(x, float(y.numpy()[0]) + 1)


def wait(x, y):
    ab.copy(y, x)
    ab.current_stream(x.device).synchronize()
    ab.fill(x, 1 + y.numpy()[0])


def wait_for_the_device(x, y):
    ab.copy(y, x)
    x.device.synchronize()
    ab.fill(x, 1 + y.numpy()[0])


def make(x, y):
    ab.copy(y, ab.array(np.full(8, x.numpy()[0], "float32"), device=x.device))
    ab.fill(x, 1 + y.numpy()[0])


def elsewhere(x, y):
    stream = ab.Stream(x.device)
    ab.copy(y, x, stream=stream)
    ab.fill(x, 1 + y.numpy()[0], stream=stream)


REFUSED = {
    "host read": (look, "host"),
    "synchronize": (wait, "wait|host"),
    "device": (wait_for_the_device, "wait|host"),
    "array": (make, "host|pinned"),
    "another stream": (elsewhere, "stream"),
}


@pytest.mark.parametrize(("function", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_captured_is_called_as_it_is_with_one_warning(device, function, reason):
    work = Counted(function)
    x, y = given(device, 1, 0)
    with pytest.warns(RuntimeWarning, match=f"{function.__name__} is not captured.*({reason})") as warned:
        work(x, y)
    assert len(warned) == 1
    for value in 1, 2, 3:
        assert_all(y, value)
        assert_all(x, value + 1)
        x, y = given(device, value + 1, 0)
        work(x, y)
    assert (work.calls, work.graphs) == (5, 0)


def test_of_what_was_not_captured_nothing_has_run_twice(device):
    @ab.graphed
    def work(x, y):
        ab.copy(y[1:], y[:-1])
        ab.synchronize()

    y = ab.array(np.arange(8, dtype="float32"), device=device)
    with pytest.warns(RuntimeWarning, match="not captured"):
        work(ready(device), y)
    assert y.numpy().tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_other_kinds_are_captured_though_one_cannot_be(device):
    def work(x):
        if x.ndim == 2:
            x.numpy()
        ab.fill(x, 1)

    working = Counted(work)
    with pytest.warns(RuntimeWarning, match="host"):
        working(ab.zeros((2, 2), device=device))
    for _ in range(3):
        x = ready(device)
        working(x)
        assert_all(x, 1)
    assert (working.calls, working.graphs) == (3, 1)


def test_of_kinds_that_cannot_be_captured_a_bounded_number_is_remembered(device):
    class Label:
        pass

    @ab.graphed(size=1)
    def step(x, y, label):
        look(x, y)

    x, y = given(device, 1, 2)
    with pytest.warns(RuntimeWarning, match="not captured"):
        step(x, y, "first")
    labels = [Label() for _ in range(200)]
    gone = [weakref.ref(label) for label in labels]
    for label in labels:
        step(x, y, label)
    del labels, label
    assert sum(reference() is not None for reference in gone) <= 64
    assert_all(x, y.numpy()[0] + 1)


def test_an_error_of_the_function_is_raised_and_nothing_stays_captured(device):
    def work(x, fails):
        ab.fill(x, 1)
        if fails:
            raise KeyError("mine")

    stream = ab.Stream(device)
    working, x = Counted(work), ready(device)
    for _ in range(2):
        with stream, pytest.raises(KeyError, match="mine"):
            working(x, True)
        assert stream.query()
        assert_all(x, 0)
    assert (working.calls, working.graphs) == (2, 0)
    working(x, False)
    assert_all(x, 1)


def test_an_error_of_the_arguments_is_that_of_the_operation(device):
    work, x = ab.graphed(lambda x, y: ab.copy(y, x)), ready(device)
    with pytest.raises(ValueError, match="shape"):
        work(x, ready(device, 9))
    work(x, ready(device))


def test_a_failure_reaches_who_looks_at_the_result(device, failures_forgotten):
    work, stream = ab.graphed(lambda x, y: ab.copy(y, x)), ab.Stream(device)
    x, y = given(device, 1, 2)
    work(*given(device, 1, 2))
    with stream:
        ab.testing.fail(stream)
        work(x, y)
        with pytest.raises(ab.KernelError):
            stream.synchronize()
