"""The contract suite runs on every device: in each test `device` is one of them, and the current device.

Order is shown with gates. While a gate holds a stream, a stream that waits for it and has nothing else to do answers
`query()` with False; one that does not wait answers True.
"""

import gc

import pytest

import anabranch as ab

from .accesses import ready


@pytest.fixture(autouse=True)
def on_device(device, current_unchanged):
    """Every test, also one that does not name it, runs on each device."""
    with device:
        yield
        assert ab.current_device() is device


# What most tests begin with. A test that drops one of them makes its own.


def a_stream(name):
    return pytest.fixture(lambda device: ab.Stream(device), name=name)


def an_array(name):
    return pytest.fixture(lambda device: ready(device), name=name)


stream, other, a, b, c, d, s = map(a_stream, ("stream", "other", "a", "b", "c", "d", "s"))
owner, user = map(a_stream, ("owner", "user"))
array, target, x, y, z = map(an_array, ("array", "target", "x", "y", "z"))


@pytest.fixture
def nothing_left():
    """Let go of what earlier tests left, so that no trace has its frees."""
    gc.collect()


@pytest.fixture(params=["fill", "copy", "submit"])
def enqueue(request):
    """Put one operation into a stream: a fill, a copy or a host function."""

    def fill(stream):
        ab.fill(ab.empty(4, device=stream.device, stream=stream), 1, stream=stream)

    def copy(stream):
        a, b = (ab.zeros(4, device=stream.device, stream=stream) for _ in range(2))
        ab.copy(a, b, stream=stream)

    def submit(stream):
        stream.submit(int)

    return {"fill": fill, "copy": copy, "submit": submit}[request.param]
