"""`ab.graphed`: captured once for arguments of a kind, replayed with others."""

import functools
import inspect

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all, give


class Counted:
    """A graphed function that counts how often it is called."""

    def __init__(self, function, **options):
        self.calls = 0

        @functools.wraps(function)
        def counting(*args, **kwargs):
            self.calls += 1
            return function(*args, **kwargs)

        self.function = ab.graphed(counting, **options)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def graphs(self):
        return self.function.graphs


def move(x, y):
    ab.copy(y, x)
    ab.fill(x, 0)


@pytest.fixture
def moving():
    return Counted(move)


def given(device, *values, dtype="float32"):
    """Make arrays that are filled."""
    return [ab.array(np.full(8, value, dtype), device=device) for value in values]


# When it is called, and when replayed


def test_the_first_call_does_what_the_function_does(device, moving):
    x, y = given(device, 1, 2)
    assert moving(x, y) is None
    assert_all(x, 0)
    assert_all(y, 1)
    assert (moving.calls, moving.graphs) == (1, 1)


def test_later_calls_replay_with_their_own_arrays(device, moving):
    for value in range(1, 5):
        x, y = given(device, value, -1)
        moving(x, y)
        assert_all(x, 0)
        assert_all(y, value)
    assert (moving.calls, moving.graphs) == (1, 1)


def test_arrays_may_change_places(device, moving):
    x, y = given(device, 1, 2)
    moving(x, y)
    moving(y, x)
    assert_all(x, 1)
    assert_all(y, 0)
    assert moving.calls == 1


def test_the_same_arrays_again(device, moving):
    x, y = given(device, 1, 2)
    for value in 3, 4, 5:
        give(x, value)
        moving(x, y)
        assert_all(y, value)
    assert moving.calls == 1


def test_arrays_that_the_function_closes_over_are_the_same_in_each_call(device):
    (constant,) = given(device, 7)
    copying = Counted(lambda x: ab.copy(x, constant))
    for _ in range(3):
        (x,) = given(device, 1)
        copying(x)
        assert_all(x, 7)
    give(constant, 8)
    copying(x)
    assert_all(x, 8)
    assert copying.calls == 1


def test_views_of_arguments(device):
    shifting = Counted(lambda x, y: ab.copy(y[2:6], x[::2]))
    for start in 0, 5:
        x = ab.array(np.arange(start, start + 8, dtype="float32"), device=device)
        (y,) = given(device, -1)
        shifting(x, y)
        expected = [-1, -1, start, start + 2, start + 4, start + 6, -1, -1]
        np.testing.assert_array_equal(y.numpy(), expected)
    assert shifting.calls == 1


def test_a_function_of_nothing(device):
    (x,) = given(device, 1)
    filling = Counted(lambda: ab.fill(x, 3))
    for _ in range(3):
        give(x, 0)
        filling()
        assert_all(x, 3)
    assert filling.calls == 1


def test_a_function_that_does_nothing(device):
    nothing = Counted(lambda x: None)
    for _ in range(3):
        assert nothing(ready(device)) is None
    assert nothing.calls == 1


# Kinds


KINDS = {
    "dtype": (lambda d: ready(d), lambda d: ab.zeros(8, "int32", device=d)),
    "size": (lambda d: ready(d), lambda d: ready(d, 9)),
    "dimensions": (lambda d: ready(d), lambda d: ab.zeros((2, 4), device=d)),
    "strides": (lambda d: ready(d), lambda d: ready(d, 16)[::2]),
    "steps": (lambda d: ready(d, 16)[::2], lambda d: ready(d, 24)[::3]),
    "direction": (lambda d: ready(d)[:], lambda d: ready(d)[::-1]),
    "no array": (lambda d: ready(d), lambda d: 1.0),
    "order of bytes": (lambda d: ab.zeros((2, 3), device=d), lambda d: ab.zeros((3, 2), device=d)),
}


@pytest.mark.parametrize(("one", "other"), KINDS.values(), ids=KINDS)
def test_arguments_of_different_kinds_are_captured_apart(device, one, other):
    def work(x, result):
        if isinstance(x, ab.Array):
            ab.fill(x, 1)
        ab.fill(result, 2)

    working, (result,) = Counted(work), given(device, 0)
    for _ in range(2):
        for make in one, other:
            x = make(device)
            give(result, 0)
            working(x, result)
            assert_all(result, 2)
            if isinstance(x, ab.Array):
                assert_all(x, 1)
    assert (working.calls, working.graphs) == (2, 2)


def test_devices_are_told_apart(device, other_device, moving):
    for where in device, other_device, device:
        x, y = given(where, 3, 0)
        moving(x, y)
        assert_all(y, 3)
    assert moving.calls == 2


def test_arguments_that_are_one_array_are_told_from_two(device):
    both = Counted(lambda x, y: (ab.fill(x, 1), ab.copy(y, x), ab.fill(x, 2))[:0])
    for _ in range(2):
        x, y = given(device, 0, 0)
        both(x, y)
        assert_all(x, 2)
        assert_all(y, 1)
        both(x, x)
        assert_all(x, 2)
    assert both.calls == 2


def test_which_of_three_arguments_are_one_array_is_told(device):
    def work(x, y, z):
        with ab.fork(2) as (a, b):
            ab.fill(x, 1, stream=a)
            ab.fill(y, 2, stream=b)
            ab.fill(z, 3, stream=a)

    working = Counted(work)
    for _ in range(2):
        for third in 0, 1:
            x, y = given(device, 0, 0)
            working(x, y, (x, y)[third])
            assert_all(x, 1 if third else 3)
            assert_all(y, 3 if third else 2)
    assert working.calls == 2


def test_views_that_overlap_are_told_from_those_that_do_not_and_by_how_much(device):
    def work(x, y):
        with ab.fork(2) as (a, b):
            ab.fill(x, 1, stream=a)
            ab.fill(y, 2, stream=b)

    working = Counted(work)
    for _ in range(2):
        for first in 4, 2, 0:
            (array,) = given(device, 0)
            working(array[:4], array[first : first + 4])
            expected = np.zeros(8, "float32")
            expected[:4] = 1
            expected[first : first + 4] = 2
            np.testing.assert_array_equal(array.numpy(), expected)
    assert working.calls == 3


def test_a_view_may_be_of_any_part(device, moving):
    for start in 0, 2, 4:
        (array,) = given(device, 5)
        y = ready(device, 4)
        moving(array[start : start + 4], y)
        assert_all(y, 5)
        expected = np.full(8, 5, "float32")
        expected[start : start + 4] = 0
        np.testing.assert_array_equal(array.numpy(), expected)
    assert moving.calls == 1


def test_keyword_arguments(device, moving):
    for value in 1, 2:
        x, y = given(device, value, 0)
        moving(x, y=y)
        assert_all(y, value)
        moving(y=x, x=y)
        assert_all(x, value)
    assert moving.calls == 2


def test_other_arguments_are_told_apart_by_their_value(device):
    work = Counted(lambda x, how: ab.fill(x, {"one": 1, "two": 2}[how]))
    for how, value in (("one", 1), ("two", 2), ("one", 1)):
        x = ready(device)
        work(x, how)
        assert_all(x, value)
    assert work.calls == 2


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True)], ids=["int and float", "int and bool"])
def test_numbers_in_other_arguments_are_told_apart_by_their_types(device, pair):
    names = {int: 3, float: 4, bool: 5}
    work = Counted(lambda x, one: ab.fill(x, names[type(one[0])]))
    for number in pair:
        x = ready(device)
        work(x, (number,))
        assert_all(x, names[type(number)])


def test_an_argument_that_is_not_hashable_makes_a_plain_call(device):
    work = Counted(lambda x, values: ab.fill(x, values[0]))
    x = ready(device)
    with pytest.warns(RuntimeWarning, match="hashable") as warned:
        work(x, [1])
    assert len(warned) == 1
    assert_all(x, 1)
    work(x, [2])
    assert_all(x, 2)
    assert (work.calls, work.graphs) == (2, 0)


def test_a_closed_array_is_refused(device, moving):
    x, y = given(device, 1, 2)
    moving(x, y)
    x.close()
    with pytest.raises(ab.ClosedError):
        moving(x, y)
    assert_all(y, 1)


def test_arrays_of_no_elements(device, moving):
    for _ in range(2):
        moving(ready(device, 0), ready(device, 0))
    assert moving.calls == 1


# What is kept


def test_no_more_than_size_captures_are_kept_and_the_oldest_goes(device):
    work = Counted(lambda x: ab.fill(x, 1), size=2)
    for size in 1, 2, 3:
        work(ready(device, size))
    assert (work.calls, work.graphs) == (3, 2)
    work(ready(device, 3))
    work(ready(device, 2))
    assert work.calls == 3
    work(ready(device, 1))
    assert (work.calls, work.graphs) == (4, 2)


def test_clear_forgets_them_all(device, moving):
    x, y = given(device, 1, 2)
    moving(x, y)
    moving.function.clear()
    assert moving.graphs == 0
    moving(y, x)
    assert_all(x, 1)
    assert (moving.calls, moving.graphs) == (2, 1)


def test_replays_that_were_launched_complete_after_clear(device, moving):
    x, y = given(device, 3, 0)
    stream = ab.Stream(device)
    with stream, ab.testing.Gate(stream):
        moving(x, y)
        moving.function.clear()
    assert_all(y, 3)


def test_it_looks_like_the_function():
    def work(x, y=3):
        """What it does."""

    graphed = ab.graphed(work)
    assert graphed.__name__ == "work"
    assert graphed.__doc__ == "What it does."
    assert graphed.__module__ == __name__
    assert graphed.__wrapped__ is work
    assert inspect.signature(graphed) == inspect.signature(work)
    assert "work" in repr(graphed)


def test_it_is_a_decorator_with_and_without_a_size(device):
    @ab.graphed
    def one(x):
        ab.fill(x, 1)

    @ab.graphed(size=4)
    def two(x):
        ab.fill(x, 2)

    for function, value in (one, 1), (two, 2):
        x = ready(device)
        function(x)
        assert_all(x, value)
        assert function.graphs == 1


def test_methods_know_their_object(device):
    class Filler:
        def __init__(self, value):
            self.value = value

        @ab.graphed
        def fill(self, x):
            ab.fill(x, self.value)
            return self

    for filler in Filler(1), Filler(2):
        for _ in range(2):
            x = ready(device)
            assert filler.fill(x) is filler
            assert_all(x, filler.value)
    assert Filler.fill.graphs == 2


@pytest.mark.parametrize("size", [0, -1, 1.5, "2", True])
def test_a_wrong_size_is_refused(size):
    with pytest.raises(ValueError, match="size"):
        ab.graphed(move, size=size)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="callable"):
        ab.graphed(3)
