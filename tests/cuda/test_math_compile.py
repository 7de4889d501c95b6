"""The kernels of operators and reductions compile for CUDA. Needs no device."""

import importlib.util

import numpy as np
import pytest

from anabranch._launch.target import Target
from anabranch._math import cuda_reduction, kernels, rules
from anabranch._memory.dtype import names
from anabranch.kernels._cpp import declaration

mlir = pytest.mark.skipif(importlib.util.find_spec("numba_cuda_mlir") is None, reason="needs numba-cuda-mlir")
nvrtc = pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="needs cuda-bindings")

TARGET = Target((9, 0))
UNARY = ["negative", "positive", "absolute", "invert", "square", "sqrt", "reciprocal"]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "remainder",
    "power",
    "bitwise_and",
    "bitwise_xor",
    "equal",
    "less",
    "greater",
]
# Each is compiled for some of the kinds, and each kind with some of the operations, since one takes a second or more.
KINDS = ["bool", "int8", "uint64", "float16", "float32", "complex64"]
REDUCTIONS = ["sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax"]


def every(step, names):
    return [(name, kind) for i, name in enumerate(names) for j, kind in enumerate(KINDS) if (i + j) % step == 0]


def array(dtype, ndim=1):
    return "array", dtype, ndim, True, False


def loop(name, *dtypes):
    try:
        return rules.loop_of(name, *(names.index(dtype) for dtype in dtypes))
    except TypeError:
        pytest.skip(f"NumPy has no {name} of {dtypes[0]}")


@mlir
@pytest.mark.parametrize(("name", "dtype"), every(3, UNARY))
def test_operators_of_one_array_compile(name, dtype):
    if name == "square" and dtype == "bool":
        pytest.skip("the square of a boolean is a power")
    if name == "reciprocal" and not dtype.startswith("float"):
        pytest.skip("only floats have one")
    found = loop(name, dtype)
    assert found.kernel("all", "all").compile_cuda((1, (array(dtype), array(found.result))), TARGET).image


@mlir
@pytest.mark.parametrize(("name", "dtype"), every(3, BINARY))
def test_operators_of_two_arrays_compile(name, dtype):
    found = loop(name, dtype, dtype)
    signature = (1, (array(dtype), array(dtype), array(found.result)))
    assert found.kernel("all", "all").compile_cuda(signature, TARGET).image


@mlir
@pytest.mark.parametrize("name", ["equal", "less_equal", "greater"])
def test_comparisons_across_signs_compile(name):
    signature = (1, (array("int64"), array("uint64"), array("bool")))
    assert loop(name, "int64", "uint64").kernel("all", "all").compile_cuda(signature, TARGET).image


@mlir
@pytest.mark.parametrize(("place", "ndim"), [("one", 1), ("scalar", 0), ("outer2", 1), ("outer3", 2), ("outer4", 3)])
def test_broadcast_operands_compile(place, ndim):
    found = loop("add", "float32", "float32")
    launch_ndim = max(2, ndim + 1)
    second = ("scalar", "float64") if place == "scalar" else array("float32", ndim)
    all_axes = array("float32", launch_ndim)
    assert found.kernel("all", place).compile_cuda((launch_ndim, (all_axes, second, all_axes)), TARGET).image
    assert found.kernel_in_place(place).compile_cuda((launch_ndim, (all_axes, second)), TARGET).image


@mlir
@pytest.mark.parametrize("dtype", KINDS)
def test_choices_and_sequences_compile(dtype):
    choice = kernels.choice(dtype, dtype, ("all", "one", "all"))
    assert choice.compile_cuda((1, (array(dtype), array(dtype), array("int8"), array(dtype))), TARGET).image
    if dtype == "bool":
        return
    kind = np.dtype(dtype).kind
    number = ("scalar", {"c": "complex128", "f": "float64"}.get(kind, "int64"))
    assert kernels.sequence(dtype).compile_cuda((1, (number, number, array(dtype))), TARGET).image
    number = ("scalar", "complex128" if kind == "c" else "float64")
    assert kernels.spaced(dtype, True).compile_cuda((1, (number, number, number, array(dtype))), TARGET).image


@nvrtc
@pytest.mark.parametrize(("name", "dtype"), every(6, REDUCTIONS))
def test_reductions_compile(name, dtype):
    from anabranch.kernels._cpp.nvrtc import compile_source

    source = cuda_reduction.source_of(name, dtype, *rules.reduction_dtypes(name, dtype))
    program = compile_source(source, [], [], 90)
    assert program.image.startswith(b"\x7fELF")
    assert {kernel.name for kernel in declaration.kernels(source)} == set(cuda_reduction._ENTRIES)
