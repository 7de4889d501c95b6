"""Elements of float16 arrays in kernels: what is stored is rounded once, and what is read is a number like others."""

import math

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@ab.kernel
def assign(i, x: ab.In, y: ab.Out):
    y[i] = x[i]


def float64s():
    """Return all float16 that are finite, what lies between two of them, and what is next to that."""
    halves = np.arange(2**16, dtype="uint16").view("float16").astype("float64")
    halves = np.sort(halves[np.isfinite(halves)])
    ties = (halves[1:] + halves[:-1]) / 2
    near = [np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), ties * (1 + 2.0**-30), ties * (1 - 2.0**-30)]
    extreme = [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.999999999, 65520.0, 3.5e38, -1e308, 5e-324, -1e-40]
    return np.concatenate([halves, ties, *near, extreme])


def test_a_float64_is_rounded_once(device):
    x = float64s()
    y = ab.empty(x.size, "float16")
    ab.launch(assign, x.size, ab.array(x), y)
    np.testing.assert_array_equal(y.numpy(), x.astype("float16"))
    np.testing.assert_array_equal(np.signbit(y.numpy()), np.signbit(x))


def test_atomics_round_once(device):
    @ab.kernel
    def exchange(i, x: ab.In, y: ab.InOut):
        ab.atomic_exchange(y, i, x[i])

    x = np.array([1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-30, 0.1])
    y = ab.zeros(4, "float16")
    ab.launch(exchange, 4, ab.array(x), y)
    np.testing.assert_array_equal(y.numpy(), x.astype("float16"))


ONE = {
    "absolute": np.abs,
    "sign": np.sign,
    "isnan": np.isnan,
    "float": float,
    "int": int,
    "abs": abs,
    "fabs": math.fabs,
    "float32": np.float32,
}
TWO = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "add": np.add,
    "copysign": np.copysign,
    "max": max,
    "fmod": np.fmod,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number_take_elements(device, name):
    function = ONE[name]

    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = function(x[i])

    x, y = np.float16([1.5, -2.25, 0, 3]), ab.empty(4, "float64")
    ab.launch(apply, 4, ab.array(x), y)
    np.testing.assert_array_equal(y.numpy(), [float(function(value)) for value in x])


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers_take_elements(device, name):
    function = TWO[name]

    @ab.kernel
    def apply(i, a: ab.In, b: ab.In, y: ab.Out):
        y[i] = function(a[i], b[i])

    a, b, y = np.float16([1.5, -2.25, 0.5, 3]), np.float16([2, 1, -0.25, 3]), ab.empty(4, "float64")
    ab.launch(apply, 4, ab.array(a), ab.array(b), y)
    np.testing.assert_array_equal(y.numpy(), [float(function(*pair)) for pair in zip(a, b, strict=True)])


def test_the_old_value_of_an_atomic_is_a_number_too(device):
    @ab.kernel
    def update(i, x: ab.InOut, y: ab.Out):
        y[i] = np.maximum(ab.atomic_add(x, i, 1), 0)

    x, y = ab.array([1.5, -2.25], "float16"), ab.empty(2, "float64")
    ab.launch(update, 2, x, y)
    assert (x.tolist(), y.tolist()) == ([2.5, -1.25], [1.5, 0])
