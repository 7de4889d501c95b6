"""What kernels compute in the code that is compiled for CUDA, without a GPU."""

import itertools

import numpy as np
import pytest

import anabranch as ab
from anabranch._math import rules
from anabranch._memory.dtype import names

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
pytest.importorskip("llvmlite")

from ..contract import blocks
from ..contract.signs import name_of, programs
from .emulated import emulate

KINDS = {"narrow": {}, "wide": {"wide": True, "flat": True}}


def cases():
    for program, kind in itertools.product(programs(), KINDS):
        # How offsets are computed does not depend on what an element becomes: one result for each type of it.
        if kind == "narrow" or program.kernel.name != "store_at_tuple" or program.expected.dtype == "int64":
            yield pytest.param(program, kind, id=f"{name_of(program)}-{kind}")


@pytest.mark.parametrize(("program", "kind"), list(cases()))
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "uint16"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_division_of_integers_is_numpy_s(name, dtype):
    limits = np.iinfo(dtype)
    numbers = np.linspace(limits.min, limits.max, 61).astype(dtype)
    numbers = np.concatenate([numbers, np.array([-3, -2, -1, 0, 1, 2, 3, 7]).astype(dtype)])
    a, b = (each.ravel() for each in np.meshgrid(numbers, numbers))
    result = ab.zeros(a.shape, dtype, device="cpu")
    operands = [ab.array(each, device="cpu") for each in (a, b)]
    ab.synchronize("cpu")
    kernel = rules.loop_of(name, names.index(dtype), names.index(dtype)).kernel("all", "all")
    emulate(kernel, a.shape, *operands, result)
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(a, b))
