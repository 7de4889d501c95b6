"""Globals and closure variables of kernels: constants from the first launch on, and a change of them is told."""

import math
import types

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.thread_unsafe]

scale = 2.0
config = types.ModuleType("config")
config.offset = 1


def helper(x):
    return x * 2


def other_helper(x):
    return x * 3


def launched(kernel):
    a = ab.ones(2)
    ab.launch(kernel, 2, a)
    return float(a.numpy()[0])


def by_global(monkeypatch):
    @ab.kernel
    def kernel(i, x):
        x[i] = scale

    return kernel, "scale = 2.0, which is 5.0 now", lambda: monkeypatch.setitem(globals(), "scale", 5.0)


def by_closure(monkeypatch):
    factor = 2

    @ab.kernel
    def kernel(i, x):
        x[i] = factor

    def change():
        nonlocal factor
        factor = (7, 8)

    return kernel, r"factor = 2, which is \(7, 8\) now", change


def by_module(monkeypatch):
    @ab.kernel
    def kernel(i, x):
        x[i] = config.offset + 1

    return kernel, "config.offset = 1, which is 3 now", lambda: monkeypatch.setattr(config, "offset", 3)


def by_array(monkeypatch):
    table = np.array([2.0, 3.0])

    @ab.kernel
    def kernel(i, x):
        x[i] = table[0]

    def change():
        nonlocal table
        table = np.array([4.0, 3.0])

    return kernel, r"table = array\(\[2., 3.\]\), which is array\(\[4., 3.\]\) now", change


def by_helper(monkeypatch):
    @ab.kernel
    def kernel(i, x):
        x[i] = helper(x[i])

    return kernel, "helper = <function helper", lambda: monkeypatch.setitem(globals(), "helper", other_helper)


def by_helpers_global(monkeypatch):
    def scaled(x):
        return scale * x

    @ab.kernel
    def kernel(i, x):
        x[i] = scaled(x[i])

    return kernel, "scale = 2.0, which is 5.0 now", lambda: monkeypatch.setitem(globals(), "scale", 5.0)


def by_element(monkeypatch):
    table = np.array([2.0, 3.0])

    @ab.kernel
    def kernel(i, x):
        x[i] = table[0]

    return kernel, "other elements of table than it has now", lambda: table.__setitem__(0, 5.0)


def by_element_of_a_plane(monkeypatch):
    table = np.full((3, 4), 2.0, order="F")

    @ab.kernel
    def kernel(i, x):
        x[i] = table[2, 3]

    return kernel, "other elements of table than it has now", lambda: table.__setitem__((2, 3), 5.0)


@pytest.mark.parametrize(
    "make",
    [by_global, by_closure, by_module, by_array, by_element, by_element_of_a_plane, by_helper, by_helpers_global],
)
def test_a_change_is_told_once(device, monkeypatch, make):
    kernel, told, change = make(monkeypatch)
    assert (launched(kernel), launched(kernel)) == (2, 2)
    change()
    with pytest.warns(RuntimeWarning, match=f"^kernel 'kernel' was compiled with {told}") as warned:
        assert launched(kernel) == 2
    assert warned[0].filename == __file__
    assert "make it a parameter" in str(warned[0].message)
    assert launched(kernel) == 2  # another warning would be an error


def test_a_value_set_to_the_same_is_no_change(device, monkeypatch):
    table, size = np.array([2.0, math.nan]), 1000

    @ab.kernel
    def kernel(i, x):
        x[i] = table[0] + size + helper(scale)

    first = launched(kernel)
    table, size = np.array([2.0, math.nan])[:], int("1000")
    monkeypatch.setitem(globals(), "scale", float("2"))
    copied = types.FunctionType(helper.__code__, globals(), "helper")
    monkeypatch.setitem(globals(), "helper", copied)
    assert launched(kernel) == first
    assert size == 1000
    assert len(table) == 2


def test_a_warning_that_is_an_error_comes_before_the_launch(device, monkeypatch):
    kernel, _, change = by_global(monkeypatch)
    assert launched(kernel) == 2
    change()
    a = ab.zeros(2)
    with pytest.raises(RuntimeWarning, match="compiled with scale"):
        ab.launch(kernel, 2, a)
    assert a.numpy().tolist() == [0, 0]
