"""Exceptions that leave a capture, and whose text cannot be had."""

import os

import pytest

import anabranch as ab

from .replays import replays_to
from .test_host_functions import UntellableError

ERRORS = {
    "untellable": UntellableError(),
    "surrogate": ValueError("a lone \udcff"),
}

RACE = """
def race(ab, array, first, second):
    with ab.hazards("check"), ab.capture(first):
        ab.fill(array, 0)
        second.wait_stream(first)
        ab.fill(array, 1)
        ab.fill(array, 2, stream=second)
"""


@pytest.fixture(params=ERRORS)
def error(request):
    return ERRORS[request.param]


def assert_over(stream, array):
    assert not stream.is_capturing
    stream.synchronize()
    with ab.capture(stream) as graph:
        ab.fill(array, 9)
    replays_to(graph, stream, [array], 9)


def test_that_of_a_block(stream, array, error):
    other = ab.Stream(stream.device)
    with pytest.raises(type(error)) as caught, ab.capture(stream) as graph:  # noqa: PT012
        ab.fill(array, 1)
        other.wait_stream(stream)
        raise error
    assert caught.value is error
    with pytest.raises(ab.CaptureError, match="was not captured"):
        graph.launch(stream)
    for one in stream, other:
        assert_over(one, array)


def test_that_of_a_body(stream, array, error):
    def body():
        ab.fill(array, 1)
        raise error

    flag = ab.ones(1, "int32", device=stream.device)
    with ab.capture(stream) as graph:
        with pytest.raises(type(error)) as caught:
            ab.run_if(flag, body)
        assert caught.value is error
        ab.fill(array, 2)
    replays_to(graph, stream, [array], 2)
    assert_over(stream, array)


def test_that_of_a_graphed_function(stream, array, error):
    streams = []

    @ab.graphed
    def work(x):
        streams.append(ab.current_stream(x.device))
        ab.fill(x, 1)
        raise error

    with stream, pytest.raises(type(error)) as caught:
        work(array)
    assert caught.value is error
    for one in [*streams, stream]:
        assert_over(one, array)


def test_a_race_in_a_file_whose_path_is_no_text(stream, array):
    namespace = {}
    exec(compile(RACE, os.fsdecode(b"/caf\xe9.py"), "exec"), namespace)
    second = ab.Stream(stream.device)
    with pytest.raises(ab.RaceError) as caught:
        namespace["race"](ab, array, stream, second)
    assert caught.value.second.file == os.fsdecode(b"/caf\xe9.py")
    for one in stream, second:
        assert_over(one, array)
