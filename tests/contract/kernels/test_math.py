"""Math functions in kernels, against NumPy in twice the precision: errors in units of the last place."""

import math

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

# Ranges of arguments, and the largest error in ULP that is allowed in float32 and in float64. NumPy's own tests ask for
# 4 at most of what they have tables for, and CUDA's programming guide states no more than that for these ranges.
FUNCTIONS = {
    "sin": (math.sin, np.sin, (-100, 100), 2, 2),
    "cos": (math.cos, np.cos, (-100, 100), 2, 2),
    "tan": (math.tan, np.tan, (-1.5, 1.5), 4, 2),
    "exp": (math.exp, np.exp, (-80, 80), 2, 2),
    "log": (math.log, np.log, (1e-3, 1e6), 2, 2),
    "log1p": (math.log1p, np.log1p, (-0.9, 1e3), 2, 2),
    "expm1": (math.expm1, np.expm1, (-5, 80), 2, 2),
    "sqrt": (math.sqrt, np.sqrt, (0, 1e6), 0.51, 0.51),
    "tanh": (math.tanh, np.tanh, (-10, 10), 3, 3),
    "sinh": (math.sinh, np.sinh, (-10, 10), 4, 3),
    "cosh": (math.cosh, np.cosh, (-10, 10), 3, 3),
    "asin": (math.asin, np.arcsin, (-1, 1), 4, 3),
    "acos": (math.acos, np.arccos, (-1, 1), 4, 3),
    "atan": (math.atan, np.arctan, (-1e3, 1e3), 3, 3),
}


def errors(result, exact):
    """Return by how many units of the last place results differ from exact values."""
    return np.abs(result.astype(exact.dtype) - exact) / np.spacing(np.abs(exact).astype(result.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(device, name, dtype):
    function, exact, (low, high), *allowed = FUNCTIONS[name]

    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = function(x[i])

    x = np.random.default_rng(0).uniform(low, high, 20_000).astype(dtype)
    y = ab.empty(x.shape, dtype)
    ab.launch(apply, x.size, ab.array(x), y)
    wider = x.astype("float64" if dtype == "float32" else np.longdouble)
    assert errors(y.numpy(), exact(wider)).max() <= allowed[dtype == "float64"]


@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 4), ("float64", 2)])
def test_powers_and_angles_are_accurate(device, dtype, allowed):
    @ab.kernel
    def apply(i, x: ab.In, y: ab.In, power: ab.Out, angle: ab.Out):
        power[i] = x[i] ** y[i]
        angle[i] = math.atan2(x[i], y[i])

    random = np.random.default_rng(0)
    x, y = random.uniform(0.1, 10, 20_000).astype(dtype), random.uniform(-10, 10, 20_000).astype(dtype)
    power, angle = ab.empty(x.shape, dtype), ab.empty(x.shape, dtype)
    ab.launch(apply, x.size, ab.array(x), ab.array(y), power, angle)
    wide = "float64" if dtype == "float32" else np.longdouble
    assert errors(power.numpy(), x.astype(wide) ** y.astype(wide)).max() <= allowed
    assert errors(angle.numpy(), np.arctan2(x.astype(wide), y.astype(wide))).max() <= 3
