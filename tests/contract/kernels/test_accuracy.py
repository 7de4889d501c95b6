"""Functions in kernels, within the errors that NumPy's own tests allow for the same arguments.

Except some inverse functions of float64 on a GPU: NVIDIA's promise 2 units in the last place, NumPy's tables allow 1.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

WITHIN_TWO_ON_A_GPU = {"arccosh", "arcsin", "arcsinh", "arctanh"}

TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"
FUNCTIONS = {
    **{f"arc{name}": getattr(math, f"a{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{name: getattr(math, name) for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{name: getattr(math, name) for name in ("exp", "expm1", "log", "log10", "log1p", "log2")},
    **{name: getattr(np, name) for name in ("cbrt", "exp2")},
}


def table(name, dtype):
    """Return arguments, results and errors in units in the last place, or skip where NumPy came without its tests."""
    path = TABLES / f"umath-validation-set-{name}.csv"
    if not path.exists():
        pytest.skip("NumPy's tests are not installed")
    with path.open() as file:
        rows = [row for row in csv.reader(line for line in file if line[0] not in "#d") if row[0] == f"np.{dtype}"]
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    arguments, results = (np.array([int(row[place], 16) for row in rows], bits).view(dtype) for place in (1, 2))
    return arguments, results, np.array([int(row[3]) for row in rows])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_as_accurate_as_numpy_s(device, name, dtype):
    arguments, results, allowed = table(name, dtype)
    if not arguments.size:
        pytest.skip(f"NumPy has no table of {name} for {dtype}")
    if device.kind == "cuda" and dtype == "float64" and name in WITHIN_TWO_ON_A_GPU:
        allowed = np.maximum(allowed, 2)
    function = FUNCTIONS[name]

    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = function(x[i])

    got = ab.empty(arguments.shape, dtype)
    ab.launch(apply, arguments.size, ab.array(arguments), got)
    found = got.numpy()
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.longdouble) - results) / np.spacing(np.abs(results))
    right = (found == results) | (np.isnan(found) & np.isnan(results)) | (error <= allowed)
    wrong = np.flatnonzero(~right)
    assert not wrong.size, [(arguments[i], found[i], results[i], error[i], allowed[i]) for i in wrong[:5]]
