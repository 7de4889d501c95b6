"""Integers keep their sign, or their lack of one, wherever a kernel takes them."""

import numpy as np
import pytest

import anabranch as ab

from ..signs import look_up, name_of, programs

pytestmark = pytest.mark.numba


@pytest.mark.parametrize("program", list(programs()), ids=name_of)
def test_results_are_those_of_numpy(device, program):
    arrays = [ab.array(array, device=device) for array in program.arrays]
    result = ab.zeros(program.expected.shape, program.expected.dtype, device=device)
    with ab.hazards("auto"):
        ab.launch(program.kernel, program.dim, *arrays, result)
    np.testing.assert_allclose(result.numpy(), program.expected, rtol=1e-6)


@pytest.mark.parametrize("zero", ["uint8", "uint32"])
def test_indices_in_bounds_pass_the_checks(device, zero):
    x, table = np.array([255, 0, 128], zero), ab.array(np.arange(256.0), device=device)
    y = ab.zeros(3, "float64", device=device)
    with ab.hazards("auto", bounds=True):
        ab.launch(look_up, 3, ab.array(x, device=device), table, y)
    assert y.numpy().tolist() == [510, 0, 256]
