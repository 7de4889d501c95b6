"""Kernels whose threads overlap several indices: which these are, and what they compute on a GPU."""

import math

import numpy as np
import pytest

import anabranch as ab

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from anabranch._launch.target import Target
from anabranch.kernels._cuda import codegen
from anabranch.kernels._cuda.straight import is_straight

BIG = 1_300_003
VECTOR = ("array", "float32", 1, True, False)


def half(value):
    return 0.5 * value


def copy(i, x, y):
    y[i] = x[i]


def saxpy(i, alpha, x, y):
    y[i] = alpha * x[i] + y[i]


def gather(i, x, index, y):
    y[i] = x[index[i]]


def wave(i, x, y):
    t = math.sin(x[i])
    y[i] = np.sqrt(abs(t)) + np.float32(1)


def transposed(ij, u, v):
    i, j = ij
    v[j, i] = u[i, j]


def branch(i, x, y):
    if x[i] > 0:
        y[i] = x[i]


def choice(i, x, y):
    y[i] = x[i] if y[i] > 0 else 0


def loop(i, x, y):
    for k in range(3):
        y[i] = x[i] + k


def swap(i, x, y):
    t = x[i]
    x[i] = y[i]
    y[i] = t


def added(i, x, bins):
    ab.atomic_add(bins, i, x[i])


def returned(i, x, y):
    y[i] = ab.atomic_add(x, 0, 1)


def helped(i, x, y):
    y[i] = half(x[i])


def unused(i, x, y):
    t = x[i]  # noqa: F841
    y[i] = 1


def late(i, x, y):
    y[i] = 1
    t = y[i]  # noqa: F841


def augmented(i, x, y):
    y[i] += x[i]


def overwritten(i, x, y):
    t = x[i]
    t = t + 1
    y[i] = t


@pytest.mark.parametrize("function", [copy, saxpy, gather, wave, transposed, augmented, overwritten])
def test_loads_of_kernels_with_one_store_of_all_that_they_load_are_unordered(function):
    assert is_straight(function)


@pytest.mark.parametrize("function", [branch, choice, loop, swap, added, returned, helped, unused, late])
def test_loads_of_other_kernels_keep_their_order(function):
    assert not is_straight(function)


def test_kernels_of_small_launches_keep_the_order_of_loads():
    kernel = ab.kernel(copy)
    for coarse in (False, True):
        target = Target((9, 0), coarse=coarse)
        ptx = codegen.build(kernel._function, kernel.parameters, (1, (VECTOR, VECTOR)), "symbol", target)
        assert ("ld.global.nc" in ptx.text) == coarse


def run(function, cuda, *arguments, dim=BIG):
    copies = [ab.array(each, device=cuda) if isinstance(each, np.ndarray) else each for each in arguments]
    ab.launch(ab.kernel(function), dim, *copies)
    return [each.numpy() for each in copies if isinstance(each, ab.Array)]


def values(count=BIG, high=512):
    return np.random.default_rng(count).integers(0, high, count).astype("float32")


def test_results_are_those_of_numpy(cuda):
    x, y = values(), values()[::-1].copy()
    np.testing.assert_array_equal(run(copy, cuda, x, y)[1], x)
    np.testing.assert_array_equal(run(saxpy, cuda, 0.5, x, y)[1], 0.5 * x + y)
    np.testing.assert_array_equal(run(augmented, cuda, x, y)[1], x + y)
    index = np.random.default_rng(0).permutation(BIG)
    np.testing.assert_array_equal(run(gather, cuda, x, index, y)[2], x[index])
    u = values(1200 * 1103).reshape(1200, 1103)
    np.testing.assert_array_equal(run(transposed, cuda, u, np.zeros((1103, 1200), "float32"), dim=u.shape)[1], u.T)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "int32", "uint32", "int64", "float64", "complex64"])
def test_every_dtype_is_loaded_right(cuda, dtype):
    x = np.random.default_rng(3).integers(0, 100, BIG).astype(dtype)
    np.testing.assert_array_equal(run(augmented, cuda, x, x[::-1].copy())[1], x + x[::-1])


def test_one_array_may_be_read_and_written_in_place(cuda):
    x = values()
    array = ab.array(x, device=cuda)
    for _ in range(3):
        ab.launch(ab.kernel(augmented), BIG, array, array)
    np.testing.assert_array_equal(array.numpy(), 8 * x)
