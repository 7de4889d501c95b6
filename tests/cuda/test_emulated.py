"""What kernels compute in the code that is compiled for CUDA, without a GPU."""

import numpy as np
import pytest

import anabranch as ab

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
pytest.importorskip("llvmlite")

from ..contract.signs import name_of, programs
from .emulated import emulate

KINDS = {"narrow": {}, "wide": {"wide": True, "flat": True}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", list(programs()), ids=name_of)
def test_results_are_those_of_numpy(program, kind):
    arrays = [ab.array(array, device="cpu") for array in program.arrays]
    result = ab.zeros(program.expected.shape, program.expected.dtype, device="cpu")
    ab.synchronize("cpu")
    emulate(program.kernel, program.dim, *arrays, result, **KINDS[kind])
    np.testing.assert_allclose(result.numpy(), program.expected, rtol=1e-6)
