"""NumPy's functions of numbers compile for CUDA, or are refused in words of ours. Needs no device."""

import importlib.util

import numpy as np
import pytest

import anabranch as ab
from anabranch._launch.target import Target

from ..contract.kernels.test_functions import BINARY, UNARY, four_at_a_time, of_one, of_two, pairs, values

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("numba_cuda_mlir") is None, reason="needs numba-cuda-mlir"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

TARGET = Target((9, 0))
KINDS = ["float32", "int32", "complex64"]


def compiled(kernel, group, *operands):
    results = [function(*operands) for function in group]
    signature = tuple(("array", str(array.dtype), 1, True, False) for array in (*operands, *results))
    return kernel.compile_cuda((1, signature), TARGET)


@pytest.mark.parametrize("dtype", KINDS)
def test_functions_of_one_number_compile(dtype):
    for group in four_at_a_time(UNARY[dtype]):
        assert compiled(of_one(*group), group, values(dtype)).image


@pytest.mark.parametrize("dtype", KINDS)
def test_functions_of_two_numbers_compile(dtype):
    x, y = pairs(dtype)
    small = y % 8 if dtype == "int32" else y
    for group in four_at_a_time(BINARY[dtype]):
        assert compiled(of_two(*group), group, x, small).image


@pytest.mark.parametrize("function", [np.maximum, np.less, np.fmin], ids=lambda function: function.__name__)
def test_complex_numbers_have_no_order(function):
    kernel, group = of_two(*[function] * 4), [function] * 4
    with pytest.raises(ab.CompileError, match="no such function of complex numbers on the GPU"):
        compiled(kernel, group, *pairs("complex64"))


def add_plane(i, x, y):
    x += y


def test_an_array_is_not_changed_by_one_of_more_dimensions():
    codes = (("array", "float32", 1, True, False), ("array", "float32", 2, True, False))
    with pytest.raises(ab.CompileError, match=r"x \+= y\n  a 1-d array cannot be changed by a 2-d one"):
        ab.kernel(add_plane).compile_cuda((1, codes), TARGET)


@pytest.mark.parametrize("function", [np.arcsin, np.sign, np.reciprocal], ids=lambda function: function.__name__)
def test_some_functions_are_of_real_numbers(function):
    kernel, group = of_one(*[function] * 4), [function] * 4
    with pytest.raises(ab.CompileError, match="no such function of complex numbers on the GPU"):
        compiled(kernel, group, values("complex64"))
