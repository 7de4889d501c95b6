"""Memory that only the body of a branch or loop uses."""

import gc

import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all, give, replays_to

# Of kernels within a branch or loop of a graph memcheck does not see that they come after allocations of their stream.
pytestmark = pytest.mark.unseen_order


@pytest.fixture(autouse=True)
def stream(device, on_device):
    """A stream that can be captured is current."""
    with ab.Stream(device) as one:
        yield one


def flag(device, value):
    return ab.full(1, value, "int32", device=device)


def sources(device, *values):
    made = [ready(device) for _ in values]
    for array, value in zip(made, values, strict=True):
        give(array, value)
    return made


def test_what_a_body_had_alone_lives_as_long_as_the_graph(device, stream):
    array, chosen = ready(device), flag(device, 1)
    left = sources(device, 5, 6)
    with ab.capture(stream) as graph:
        ab.run_if(chosen, lambda: ab.copy(array, left.pop(0)), lambda: ab.copy(array, left.pop(0)))
    gc.collect()
    others = [ab.full(8, -1, "float32", device=device) for _ in range(20)]
    for value, expected in (1, 5), (0, 6), (1, 5):
        give(chosen, value)
        replays_to(graph, stream, [array], expected)
    assert len(others) == 20


def test_what_a_body_within_a_body_had_alone_lives_as_long_as_the_graph(device, stream):
    array, chosen = ready(device), flag(device, 1)
    left = sources(device, 5)
    with ab.capture(stream) as graph:
        ab.run_if(chosen, lambda: ab.run_if(chosen, lambda: ab.copy(array, left.pop())))
    gc.collect()
    others = [ab.full(8, -1, "float32", device=device) for _ in range(20)]
    replays_to(graph, stream, [array], 5)
    assert len(others) == 20


def test_what_a_body_reads_is_in_order_with_what_writes_it_later(device, stream):
    array, chosen = ready(device), flag(device, 1)
    (source,) = sources(device, 5)
    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        with a:
            ab.run_if(chosen, lambda: ab.copy(array, source))
        ab.fill(source, 6, stream=b)
    assert [(one.index, other.index) for one, other in graph.edges] == [(0, 1)]
    replays_to(graph, stream, [array], 5)
    assert_all(source, 6)


def test_a_body_may_close_the_flag(device, stream):
    array, chosen = ready(device), flag(device, 1)
    with ab.capture(stream) as graph:
        ab.run_if(chosen, lambda: (ab.fill(array, 7), chosen.close()))
    others = [flag(device, 0) for _ in range(20)]
    replays_to(graph, stream, [array], 7)
    assert len(others) == 20
