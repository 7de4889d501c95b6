"""Bodies of branches and loops: the capture around them, its memory and its streams."""

import pytest

import anabranch as ab

from ..accesses import ready
from .replays import SIZE, assert_all, edges, kinds

# Of kernels within a branch or loop of a graph memcheck does not see that they come after allocations of their stream.
pytestmark = pytest.mark.unseen_order


@pytest.fixture
def flag(device):
    """A flag that is set."""
    return ab.array([1], "int32", device=device)


def test_memory_that_is_dropped_in_a_body_is_free_after_it(flag, stream, other, target):
    with ab.hazards("off"), ab.capture(stream) as graph:
        arrays = [ab.full(SIZE, 5, "float32")]
        pointer = arrays[0].ptr
        other.wait_stream(stream)
        ab.run_if(flag, lambda: ab.copy(target, arrays.pop()))
        later = ab.empty(SIZE, stream=other)
        ab.fill(later, 7, stream=other)
    assert kinds(graph) == ["alloc", "fill", "if", "free", "alloc", "fill"]
    assert {(1, 2), (2, 3)} < edges(graph)
    assert later.ptr != pointer
    graph.launch(stream)
    assert_all(target, 5)


def test_a_body_may_not_begin_once_the_capture_has_ended(flag, stream, other, array):
    def then():
        with pytest.raises(ab.CaptureError, match="queried"):
            other.query()

    def capture():
        with ab.capture(stream):
            other.wait_stream(stream)
            ab.fill(array, 1, stream=other)
            ab.run_if(flag, then, lambda: ab.fill(array, 2))

    with pytest.raises(ab.CaptureError, match=r"has ended: .*queried"):
        capture()
    assert not stream.is_capturing
    assert not other.is_capturing
    assert_all(array, 0)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_streams_of_the_capture_take_part_in_bodies_of_any_depth(flag, depth, stream, other, array):
    def innermost():
        other.wait_stream(stream)
        ab.fill(array, 2, stream=other)

    def within(body, depth):
        return body if depth == 0 else within(lambda: ab.run_if(flag, body), depth - 1)

    with ab.capture(stream) as graph:
        other.wait_stream(stream)
        ab.fill(array, 1, stream=other)
        within(innermost, depth)()
        other.wait_stream(stream)
        ab.copy(array[:4], array[4:], stream=other)
    assert kinds(graph) == ["fill", "if", "copy"]
    assert edges(graph) == {(0, 1), (1, 2)}
    assert not other.is_capturing
    graph.launch(stream)
    assert_all(array, 2)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_host_cannot_have_in_a_body_what_is_written_before_it(device, flag, depth):
    array, unused = ready(device), ready(device)

    def look():
        assert_all(unused, 0)
        array.numpy()
        raise AssertionError

    def capture():
        with ab.capture(ab.Stream(device)):
            ab.fill(array, 1)
            ab.run_if(flag, look if depth == 1 else lambda: ab.run_if(flag, look))

    with pytest.raises(ab.CaptureError, match="captured work writes"):
        capture()
    assert_all(array, 0)
