"""What graphed functions keep of a call, and what they must not."""

import contextlib
import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import comes
from .replays import assert_all
from .test_graphed import Counted


@ab.graphed
def named(x):
    ab.fill(x, 1)


class Holder:
    """Somewhere to put things."""


VIEWS = {"part": lambda x: x[1:], "turned": lambda x: x[::-1], "all": lambda x: x[:]}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_function_that_keeps_a_view_of_an_argument_is_called_as_it_is(device, view):
    kept = []

    def work(x):
        kept.append(view(x))
        ab.fill(x, len(kept))

    working = Counted(work)
    with pytest.warns(RuntimeWarning, match="work is not captured.*keeps a view"):
        working(ready(device))
    for _ in range(2):
        x = ready(device)
        working(x)
        assert_all(kept[-1], len(kept))
        ab.fill(kept[-1], -1)
        assert_all(x[1:], -1)
    assert working.graphs == 0


def test_a_view_that_only_the_collector_can_free_is_not_kept(device):
    def work(x):
        holder = Holder()
        holder.itself = holder
        holder.view = x[1:]
        ab.fill(holder.view, 1)

    working = Counted(work)
    for _ in range(2):
        x = ready(device)
        working(x)
        assert x.numpy().tolist() == [0] + [1] * 7
    assert (working.calls, working.graphs) == (1, 1)


@pytest.mark.parametrize("size", [1, 16])
def test_what_is_cleared_while_it_is_captured_is_captured_once_more(device, size):
    def work(x):
        if working.calls == 1:
            working.function.clear()
        ab.fill(x, working.calls)

    working = Counted(work, size=size)
    for calls in 1, 2, 2, 2:
        x = ready(device)
        working(x)
        assert_all(x, calls)
    assert (working.calls, working.graphs) == (2, 1)


def test_arguments_of_a_call_that_raised_are_let_go(device):
    def work(x, thing, fails):
        ab.fill(x, 1)
        if fails:
            raise KeyError

    working, x, thing = Counted(work), ready(device), Holder()
    working(x, thing, False)
    for fails in True, False:
        other = Holder()
        gone = weakref.ref(other)
        with pytest.raises(KeyError) if fails else contextlib.nullcontext():
            working(x, other, fails)
        del other
        gc.collect()
        assert (gone() is None) == fails
    working(x, thing, False)
    assert (working.calls, working.graphs) == (3, 2)


@pytest.mark.numba
@pytest.mark.unseen_order
def test_arguments_that_bodies_have_views_of_are_let_go(device):
    if device.alias != "cpu:0":
        pytest.skip("memory of the host is the first CPU's")
    flag = ab.ones(1, "int32", device=device)

    def work(x, y):
        part = x[1:]
        ab.run_if(
            flag, lambda: ab.run_if(flag, lambda: ab.launch(add, 7, part, y[1:])), lambda: ab.launch(add, 7, part, y)
        )

    working, y = Counted(work), ready(device)
    for calls in 1, 2:
        memory, gone = np.ones(8, "float32"), threading.Event()
        weakref.finalize(memory, gone.set)
        x = ab.asarray(memory)
        working(x, y)
        assert y.numpy().tolist() == [0] + [calls] * 7
        del x, memory
        gc.collect()
        if calls == 1:
            assert comes(gone)
    assert (working.calls, working.graphs) == (1, 1)


@ab.kernel
def add(i, x: ab.In, y: ab.InOut):
    y[i] += x[i]


def test_a_graphed_function_goes_by_its_name():
    assert pickle.loads(pickle.dumps(named)) is named
    assert copy.copy(named) is named
    assert copy.deepcopy([named]) == [named]


def test_a_graphed_function_without_a_name_says_so():
    for function in (lambda x: None), copy.copy:
        graphed = ab.graphed(function)
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"pickle|local object"):
            pickle.dumps(graphed)
