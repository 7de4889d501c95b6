"""What graphed functions return, and whom their captures keep alive."""

import collections
import gc
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import comes
from .replays import assert_all
from .test_graphed import Counted, given
from .test_lifetime import finalized


class Pair(NamedTuple):
    first: object
    second: object


@ab.kernel
def put(i, value, x: ab.Out):
    x[i] = value


def twice(device, function, *more, values=(1, 2)):
    """Call a function with two arrays, one after the other; gives the results and the arrays."""
    work = Counted(function)
    arrays = given(device, *values)
    results = [work(array, *more) for array in arrays]
    assert work.calls == 1
    return zip(results, arrays, strict=True)


def test_an_argument_is_that_of_the_call(device):
    for result, array in twice(device, lambda x: x):
        assert result is array


def test_a_view_of_an_argument_is_one_of_the_calls(device):
    for result, array in twice(device, lambda x: x[2:6]):
        assert (result.shape, result.ptr, result.device) == ((4,), array[2:].ptr, device)
        assert_all(result, array.numpy()[0])
        ab.fill(result, 7)
        assert array.numpy().tolist()[1:7] == [array.numpy()[0], 7, 7, 7, 7, array.numpy()[0]]


def test_a_view_of_a_view_is_one_of_the_calls(device):
    work = Counted(lambda x: x[::2])
    for start in 2, 0:
        array = ab.array(np.arange(8, dtype="float32"), device=device)
        assert work(array[start : start + 6]).numpy().tolist() == [start, start + 2, start + 4]
    assert work.calls == 1


def test_a_view_keeps_the_memory_of_its_own_call(device):
    work = Counted(lambda x: x[:4])
    (array,) = given(device, 3)
    view = work(array)
    del array
    others = [work(other) for other in given(device, 4, 5)]
    assert_all(view, 3)
    assert len(others) == 2


def test_an_array_of_the_graphs_own_is_one_object_which_each_call_writes_again(device):
    def work(x):
        made = ab.zeros(8, stream=ab.current_stream(x.device))
        ab.copy(made, x)
        return made

    (first, _), (second, array) = twice(device, work)
    assert first is second
    assert_all(first, 2)
    assert first.ptr != array.ptr


def test_an_array_that_the_function_closes_over(device):
    (constant,) = given(device, 7)
    for result, _ in twice(device, lambda x: constant):
        assert result is constant


def test_numbers(device):
    work = Counted(lambda x, a: (a, a + 1, 2 * a, 5))
    for number in 1, 10, 2**62:
        result = work(ready(device), number)
        assert result == (number, number + 1, 2 * number, 5)
        assert [type(each) for each in result] == [int] * 4
    assert work.calls == 1


def test_tuples_lists_and_dictionaries_of_these(device):
    work = Counted(lambda x, a: (x, [a * 2, None, (x[1:],)], {"x": x, "text": "t"}, ()))
    for number, x in enumerate(given(device, 4, 5)):
        first, listed, named, empty = work(x, number)
        assert first is x
        assert isinstance(listed, list)
        assert listed[:2] == [number * 2, None]
        assert_all(listed[2][0], number + 4)
        assert named == {"x": x, "text": "t"}
        assert empty == ()
    assert work.calls == 1


def test_a_list_is_a_new_one_each_time(device):
    (first, _), (second, _) = twice(device, lambda x: [x])
    assert first is not second


def test_keys_of_dictionaries_are_those_of_the_call(device):
    work = Counted(lambda x, a: {x: 1, x[1:]: 2, "text": 3, None: 4, a: 5, (a + 1, x): 6})
    for number, x in zip((2.5, 2.5, 4.5), given(device, 1, 2, 3), strict=True):
        result = work(x, number)
        assert list(result.values()) == [1, 2, 3, 4, 5, 6]
        first, view, *others = result
        assert first is x
        assert_all(view, x.numpy()[0])
        assert others == ["text", None, number, (number + 1, x)]
        assert type(others[2]) is type(others[3][0]) is float
    # The value of a key is looked at.
    assert (work.calls, work.graphs) == (2, 2)


@pytest.mark.filterwarnings("ignore:.*is not captured:RuntimeWarning")
def test_a_key_that_is_another_object_is_that_of_the_call(device):
    work = ab.graphed(lambda x: {frozenset([x]): 1})
    for x in given(device, 1, 2):
        assert work(x) == {frozenset([x]): 1}
    assert work.graphs == 0


def in_itself(kind, x):
    made = kind()
    if kind is dict:
        made["itself"] = made
    else:
        made.append((made, x))
    return made


def nested(x, levels=100_000):
    made = x
    for _ in range(levels):
        made = [made]
    return made


NESTED = {
    "a list in itself": lambda x: in_itself(list, x),
    "a dictionary in itself": lambda x: in_itself(dict, x),
    "many levels": nested,
}


@pytest.mark.parametrize("function", NESTED.values(), ids=NESTED)
def test_what_is_nested_without_end_is_that_of_the_call(device, function):
    def work(x):
        ab.fill(x, 1)
        return function(x)

    working = Counted(work)
    x, y = given(device, 2, 3)
    with pytest.warns(RuntimeWarning, match="work is not captured.*contains itself"):
        result = working(x)
    assert type(result) is type(function(x))
    assert_all(x, 1)
    working(y)
    assert_all(y, 1)
    assert (working.calls, working.graphs) == (3, 0)


def test_some_levels_are_those_of_the_call(device):
    work = Counted(lambda x: nested(x, 50))
    for x in given(device, 2, 3):
        result = work(x)
        for _ in range(50):
            (result,) = result
        assert result is x
    assert work.calls == 1


@pytest.mark.filterwarnings("ignore:.*is not captured:RuntimeWarning")
def test_arguments_in_other_objects_are_those_of_the_call(device):
    work = ab.graphed(lambda x, y: Pair(x, y[1:]))
    for values in (1, 2), (3, 4):
        x, y = given(device, *values)
        result = work(x, y)
        assert isinstance(result, Pair)
        assert result.first is x
        assert_all(result.second, values[1])


# What is kept alive


HOLDERS = {
    "fill": lambda x: ab.fill(x, 1),
    "a fill of a part": lambda x: ab.fill(x[2:], 1),
    "copy": lambda x: ab.copy(x[:2], x[2:4]),
    "if": lambda x: ab.run_if(x[:1], lambda: ab.fill(x, 1)),
    "while": lambda x: ab.run_while(x[:1], lambda: ab.fill(x, 0)),
    "return": lambda x: [x, x[2:]],
    "launch": lambda x: ab.launch(put, 4, 1, x),
    "launch on a part": lambda x: ab.launch(put, 4, 1, x[2:]),
}
NEED_NUMBA = {"launch", "launch on a part"}


@pytest.mark.parametrize(
    "function",
    [pytest.param(work, id=name, marks=[pytest.mark.numba] * (name in NEED_NUMBA)) for name, work in HOLDERS.items()],
)
def test_memory_of_an_earlier_call_goes_back(device, function):
    if device.kind != "cpu" or device.index:
        pytest.skip("memory of the host is the first CPU's")
    work = ab.graphed(function)
    memory = np.ones(8, "int32")
    gone = finalized(memory)
    array = ab.asarray(memory)
    work(array)
    device.synchronize()
    del array, memory
    gc.collect()
    assert work.graphs == 1
    assert comes(gone)


def test_arrays_of_a_call_are_not_kept(device):
    work, (x, y) = ab.graphed(lambda x, y: ab.copy(x, y)), given(device, 1, 2)
    work(x, y)
    gone = [finalized(each) for each in (x, y)]
    del x, y
    work(*given(device, 3, 4))
    gc.collect()
    assert all(comes(each) for each in gone)


def test_objects_that_only_evicted_captures_knew_are_let_go(device):
    class Thing:
        pass

    work, things = ab.graphed(lambda x, thing: ab.fill(x, 1), size=2), [Thing() for _ in range(5)]
    x, gone = ready(device), [weakref.ref(thing) for thing in things]
    for thing in things:
        work(x, thing)
    del thing, things
    gc.collect()
    assert sum(each() is not None for each in gone) <= 2


def test_clear_lets_everything_go(device):
    (constant,) = given(device, 1)
    work = ab.graphed(lambda x, y: ab.copy(x, constant))
    thing = collections.UserString("thing")
    work(ready(device), thing)
    gone = finalized(thing)
    del thing
    work.clear()
    gc.collect()
    assert comes(gone)


def test_replays_keep_what_they_use_until_they_are_through(device):
    work, stream, result = ab.graphed(lambda x, y: ab.copy(y, x)), ab.Stream(device), ready(device)
    with stream, ab.testing.Gate(stream):
        work(given(device, 1)[0], ready(device))
        work(given(device, 6)[0], result)
        work.clear()
        del work
        others = [ab.full(8, -1, "float32", device=device, stream=ab.Stream(device)) for _ in range(20)]
        gc.collect()
    assert_all(result, 6)
    assert len(others) == 20
