"""What kernels compute in the code that is compiled for CUDA, without a GPU."""

import numpy as np
import pytest

import anabranch as ab

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
pytest.importorskip("llvmlite")

from ..contract import blocks
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


def _check(kernel, dims, arrays, expected, kind):
    arrays = [ab.array(array, device="cpu") for array in arrays]
    result = ab.zeros(expected.shape, expected.dtype, device="cpu")
    ab.synchronize("cpu")
    emulate(kernel, dims, *arrays, result, **kind)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [{}, {"wide": True}], ids=["narrow", "wide"])
def test_blocks_share_memory(kind):
    rng = np.random.default_rng(0)
    x = rng.random((32, 48), "float32")
    _check(blocks.transposed, x.shape, [x], x.T, kind)
    x = rng.random(100)
    _check(blocks.sums, (128,), [x], np.array([x[:64].sum(), x[64:].sum()]), kind)
    a, b = rng.random((16, 24)), rng.random((24, 8))
    _check(blocks.product, (16, 8), [a, b], a @ b, kind)


def test_variables_live_across_barriers():
    x = np.random.default_rng(0).random(32)
    y = ab.array(x, device="cpu")
    ab.synchronize("cpu")
    emulate(blocks.many_live_values, (32,), y)
    np.testing.assert_allclose(y.numpy(), blocks.after_many_live_values(x), rtol=1e-12)
