"""Graphed functions of memory with several handles: calls are told apart by the bytes that their arguments share."""

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all
from .test_graphed import Counted


@pytest.fixture(autouse=True)
def first_cpu(device):
    with ab.Device("cpu:0") as first:
        yield first


def fill_all(*arrays):
    with ab.fork(len(arrays)) as branches:
        for number, (array, branch) in enumerate(zip(arrays, branches, strict=True), 1):
            ab.fill(array, number, stream=branch)


# Where the handles of a call begin. Each call is of another kind.
CALLS = {
    "two": [(0, 4), (0, 3), (0, 2), (0, 0)],
    "three": [(0, 4, 8), (0, 2, 8), (0, 4, 2), (0, 4, 6), (0, 2, 3), (2, 0, 3)],
}


def filled(filling, handles_of, starts):
    """What is in memory after a call with handles of it, and what has to be."""
    x, expected = np.zeros(16, "float32"), np.zeros(16, "float32")
    filling(*handles_of(x, starts))
    ab.synchronize()
    for number, start in enumerate(starts, 1):
        expected[start : start + 4] = number
    return x.tolist(), expected.tolist()


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("views", [False, True])
def test_handles_that_overlap_are_told_from_those_that_do_not_and_by_how_much(calls, views):
    def handles_of(x, starts):
        if views:  # of handles that overlap, whatever their views do
            return [ab.from_dlpack(x[: 12 + n])[start : start + 4] for n, start in enumerate(starts)]
        return [ab.from_dlpack(x[start : start + 4]) for start in starts]

    filling = Counted(fill_all)
    for _ in range(2):
        for starts in calls:
            result, expected = filled(filling, handles_of, starts)
            assert result == expected
    assert filling.calls == len(calls)


def test_a_race_between_handles_is_found_after_a_call_without():
    filling = Counted(fill_all)
    apart = [ab.from_dlpack(np.zeros(6, "float32")) for _ in range(2)]
    x = np.zeros(8, "float32")
    overlapping = [ab.from_dlpack(x[:6]), ab.from_dlpack(x[2:])]
    with ab.hazards("check"):
        filling(*apart)
        with pytest.raises(ab.RaceError):
            filling(*overlapping)


@pytest.mark.filterwarnings("ignore:.*is not captured:RuntimeWarning")
@pytest.mark.parametrize("overlaps_first", [True, False])
def test_a_handle_of_memory_that_the_function_closes_over_is_no_replay(first_cpu, overlaps_first):
    x = np.ones(8, "float32")
    constant, overlapping = ab.from_dlpack(x[2:6]), ab.from_dlpack(x[4:])

    def work(handle, result):
        with ab.fork(2) as (a, b):
            ab.fill(handle, 7, stream=a)
            ab.copy(result, constant, stream=b)

    working, result = Counted(work), ready(first_cpu, 4)
    if not overlaps_first:
        working(ab.from_dlpack(np.zeros(4, "float32")), result)
        assert_all(result, 1)
    working(overlapping, result)
    np.testing.assert_array_equal(result.numpy(), [1, 1, 7, 7])
    assert (working.calls, working.graphs) == (2, 0 if overlaps_first else 1)


def test_a_handle_beside_memory_that_the_function_closes_over_is_replayed(first_cpu):
    x = np.ones(8, "float32")
    constant = ab.from_dlpack(x[2:4])
    result = ready(first_cpu, 2)
    working = Counted(lambda handle: (ab.fill(handle, 7), ab.copy(result, constant))[:0])
    for part in np.s_[:2], np.s_[4:6], np.s_[6:]:
        working(ab.from_dlpack(x[part]))
        assert_all(result, 1)
    ab.synchronize()
    np.testing.assert_array_equal(x, [7, 7, 1, 1, 7, 7, 7, 7])
    assert working.calls == 1


def test_a_handle_that_another_argument_closes_is_refused():
    class Closing:
        def __init__(self, array):
            self.array = array

        def __hash__(self):
            self.array.close()
            return 1

        def __eq__(self, other):
            return True

    working, x = Counted(lambda first, closing, second: fill_all(first, second)), np.zeros(8, "float32")
    for _ in range(2):
        first, second = ab.from_dlpack(x[:6]), ab.from_dlpack(x[2:])
        with pytest.raises(ab.ClosedError):
            working(first, Closing(first), second)
    assert working.calls == 0
