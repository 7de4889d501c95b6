"""Elements of float16 arrays in kernels: what is stored is rounded once."""

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

    x = np.array([1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-30])
    y = ab.zeros(3, "float16")
    ab.launch(exchange, 3, ab.array(x), y)
    np.testing.assert_array_equal(y.numpy(), x.astype("float16"))
