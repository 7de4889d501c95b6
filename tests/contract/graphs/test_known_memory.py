"""Graphs of memory with several handles. What races in a capture is tested with what races outside it."""

import numpy as np
import pytest

import anabranch as ab

from ..accesses import look, put, ready
from ..hazards.test_known_memory import first_to_write, handles  # noqa: F401
from .replays import edges, joined


def part_and_whole():
    """Two handles of memory, the second of all of it, for which there is no storage that both have."""
    x = np.zeros(8, "float32")
    return ab.from_dlpack(x[4:]), ab.from_dlpack(x)


@pytest.mark.parametrize("part_first", [True, False])
def test_a_part_is_at_its_place_in_the_whole(device, part_first):
    part, whole = part_and_whole()
    stream = ab.Stream("cpu:0")
    with ab.capture(stream) as graph:
        ab.fill((part if part_first else whole)[:1], 0)
        a, b, c = joined(stream.device, stream, 3)
        ab.fill(whole[5:7], 1, stream=a)
        ab.fill(part[1:3], 2, stream=b)
        ab.fill(whole[1:3], 3, stream=c)
    assert edges(graph) == {(0, 1), (0, 3), (1, 2)}


def test_a_race_tells_which_part_of_the_whole_it_is_of(device):
    part, whole = part_and_whole()
    stream = ab.Stream("cpu:0")
    with (  # noqa: PT012
        pytest.raises(ab.RaceError, match="bytes 20 to 28 of an array of 32 bytes"),
        ab.hazards("check"),
        ab.capture(stream),
    ):
        a, b = joined(stream.device, stream, 2)
        ab.fill(whole[5:7], 1, stream=a)
        ab.fill(part[1:3], 2, stream=b)


def test_the_host_may_look_at_what_is_read_by_another_handle_and_beside_what_is_written(device):
    x = np.ones(8, "float32")
    part, beside, whole = ab.from_dlpack(x[:4]), ab.from_dlpack(x[4:]), ab.from_dlpack(x)
    with ab.capture(ab.Stream("cpu:0")):
        ab.copy(ab.empty(8, device="cpu:0"), whole)
        np.testing.assert_array_equal(part.numpy(), 1)
    with ab.capture(ab.Stream("cpu:0")):
        ab.fill(part, 2)
        np.testing.assert_array_equal(beside.numpy(), 1)


@pytest.mark.numba
def test_new_arguments_that_another_node_accesses_by_another_handle_are_refused(handles):  # noqa: F811
    one, other = first_to_write(handles)
    stream, x, y = ab.Stream(one.device), ready(one.device), ready(one.device)
    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        ab.launch(put, 1, x, stream=a)
        ab.launch(look, 1, y, stream=b)
    first, second = graph.nodes
    graph.set_args(first, one)
    with pytest.raises(ValueError, match="no order"):
        graph.set_args(second, other)
    graph.set_args(first, x)
    graph.set_args(second, other)
    with pytest.raises(ValueError, match="no order"):
        graph.set_args(first, one)


@pytest.mark.numba
def test_new_arguments_may_be_beside_those_of_another_node(device):
    x = np.zeros(8, "float32")
    part, beside, overlapping = (ab.from_dlpack(x[bounds]) for bounds in (np.s_[:4], np.s_[4:], np.s_[3:]))
    with ab.capture(ab.Stream("cpu:0")) as graph, ab.fork(2) as (a, b):
        ab.launch(put, 1, part, stream=a)
        ab.launch(put, 1, beside, stream=b)
    _, second = graph.nodes
    for array in beside, overlapping[1:], overlapping[:0], part[4:]:
        graph.set_args(second, array)
    with pytest.raises(ValueError, match="no order"):
        graph.set_args(second, overlapping[:1])
