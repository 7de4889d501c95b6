"""Comparisons and truth of floats in kernels: nan is equal to nothing, and true."""

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def differs(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = x[i] != y[i]


@ab.kernel
def is_true(i, x: ab.In, out: ab.Out):
    out[i] = 0
    if x[i]:
        out[i] = 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("other", ["float32", "float64", "int32"])
def test_nan_differs_from_everything(device, dtype, other):
    x = np.array([np.nan, np.nan, 1, 0, np.inf, 2], dtype)
    y = np.array([0, 3, 1, 1, 5, 2], other)
    out = ab.zeros(6, "bool", device=device)
    ab.launch(differs, 6, ab.array(x, device=device), ab.array(y, device=device), out)
    np.testing.assert_array_equal(out.numpy(), x != y)
    ab.launch(differs, 6, ab.array(x, device=device), ab.array(x, device=device), out)
    np.testing.assert_array_equal(out.numpy(), x != x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_true(device, dtype):
    x = np.array([np.nan, 0, -0.0, 1, np.inf], dtype)
    out = ab.zeros(5, "int32", device=device)
    ab.launch(is_true, 5, ab.array(x, device=device), out)
    np.testing.assert_array_equal(out.numpy(), x.astype(bool))
