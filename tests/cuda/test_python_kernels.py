"""Python kernels as code for CUDA, which needs no device; what they compute is in the contract tests."""

import math
import re
import threading

import numpy as np
import pytest

import anabranch as ab

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from anabranch._launch.target import Target
from anabranch.kernels._cuda import codegen, entry

HOPPER = Target((9, 0))
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path))


def array(dtype, ndim=1, contiguous=True, readonly=False):
    return "array", dtype, ndim, contiguous, readonly


def build(kernel, *codes, ndim=1, target=HOPPER):
    return codegen.build(kernel._function, kernel.parameters, (ndim, codes), "symbol", target)


def twice(value):
    return 2 * value


def quadruple(value):
    return twice(twice(value))


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


@ab.kernel
def assign(index, x: ab.In, y: ab.Out):
    y[index] = x[index]


@ab.kernel
def put(i, value, y: ab.Out):
    y[i] = value


@ab.kernel
def divide(i, x: ab.In, y: ab.Out, z: ab.Out):
    y[i] = x[i] // x[i + 1]
    z[i] = x[i] % x[i + 1]


@ab.kernel
def update(i, x: ab.In, y: ab.InOut, old: ab.Out):
    old[i] = ab.atomic_add(y, x[i], 1) + ab.atomic_min(y, x[i], 2) + ab.atomic_max(y, -1, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_compiles(dtype):
    for kernel in assign, put:
        source = array(dtype) if kernel is assign else ("scalar", dtype)
        compiled = kernel.compile_cuda((1, (source, array(dtype))), HOPPER)
        assert compiled.image.startswith(b"\x7fELF")


def test_a_complex_number_is_no_element_of_another_dtype():
    with pytest.raises(
        ab.CompileError, match=r"y\[index\] = x\[index\]\n  an element of float32 cannot be set to complex64"
    ):
        assign.compile_cuda((1, (array("complex64"), array("float32"))), HOPPER)


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_every_number_of_dimensions_compiles(ndim, contiguous):
    code = array("float32", ndim, contiguous)
    compiled = assign.compile_cuda((ndim, (code, code)), HOPPER)
    assert max(compiled.slots) < 2 * (1 + 2 * ndim)


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_atomics_compile_for_every_dtype(dtype):
    update.compile_cuda((1, (array("int64"), array(dtype), array(dtype))), HOPPER)


@pytest.mark.parametrize(("dtype", "instruction"), [("int32", "min.s32"), ("uint32", "min.u32"), ("uint64", "min.u64")])
def test_atomics_know_the_sign(dtype, instruction):
    assert f"atom.global.{instruction}" in build(update, array("int64"), array(dtype), array(dtype)).text


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0), (12, 0)])
def test_kernels_compile_for_devices_that_the_machine_need_not_have(capability):
    compiled = saxpy.compile_cuda((1, (("scalar", "float64"), array("float32"), array("float32"))), Target(capability))
    assert compiled.image.startswith(b"\x7fELF")


def test_each_parameter_has_its_slot():
    ptx = build(saxpy, ("scalar", "float64"), array("float32"), array("float32", contiguous=False))
    (line,) = re.findall(r"\.entry symbol\((.*?)\)", ptx.text, re.DOTALL)
    # The size of the index space; alpha; the pointer of x, which is contiguous; pointer and stride of y.
    assert line.count(".param") == 1 + len(ptx.slots)
    assert ptx.slots == (0, 1, 4, 6)


@ab.kernel
def smooth(ij, u: ab.In, v: ab.Out):
    i, j = ij
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        v[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


def test_a_narrow_kernel_neither_divides_nor_multiplies_in_64_bits():
    plane = array("float32", 2)
    text = build(smooth, plane, plane, ndim=2).text
    assert not re.search(r"\b(div|rem)\.|mul\.lo\.s64|mad\.lo\.s64|selp", text)


def test_the_threads_of_a_coarse_kernel_alone_run_several_indices():
    loop = re.compile(r"(\$L__BB0_\d+):.*bra(?:\.uni)?\s+\1;", re.DOTALL)
    plane = array("float32", 2)
    assert not loop.search(build(smooth, plane, plane, ndim=2).text)
    assert loop.search(build(smooth, plane, plane, ndim=2, target=HOPPER._replace(coarse=True)).text)


def test_a_wide_kernel_counts_in_64_bits():
    plane = array("float32", 2)
    text = build(smooth, plane, plane, ndim=2, target=Target((9, 0), wide=True, flat=True)).text
    assert re.search(r"div\.u64", text)
    assert re.search(r"mul\.lo\.s64|mad\.lo\.s64", text)
    assert not re.search(r"ld\.param\.[us]32", text)


def test_a_product_that_may_overflow_may_be_negative():
    @ab.kernel
    def hashed(i, y: ab.Out):
        y[i] = (i * 6364136223846793005) >> 60

    @ab.kernel
    def even(i, y: ab.Out):
        y[i] = (i * 6) >> 1

    assert "shr.s64" in build(hashed, array("int64")).text
    assert "shr.s64" not in build(even, array("int64")).text


def test_a_flat_kernel_divides_in_32_bits():
    plane = array("float32", 2)
    text = build(smooth, plane, plane, ndim=2, target=Target((9, 0), flat=True)).text
    assert re.search(r"div\.u32", text)
    assert not re.search(r"(div|rem)\.[us]64", text)


def test_kernels_that_move_across_rows_are_known():
    @ab.kernel
    def transpose(ij, u: ab.In, v: ab.Out):
        i, j = ij
        v[j, i] = u[i, j]

    @ab.kernel
    def transpose_inside(ij, u: ab.In, v: ab.Out):
        v[ij[1] - 1, ij[0]] = u[ij[0], ij[1]]

    plane = array("float32", 2)
    assert build(transpose, plane, plane, ndim=2).across
    assert build(transpose_inside, plane, plane, ndim=2).across
    assert not build(smooth, plane, plane, ndim=2).across


def test_helpers_are_compiled_anew_for_each_kernel():
    scope = {"FACTOR": 2.5}
    exec("def scaled(x, i):\n    return FACTOR * x[i]\n", scope)
    scaled = scope["scaled"]

    def kernel():
        @ab.kernel
        def use(i, x: ab.In, y: ab.Out):
            y[i] = scaled(x, i)

        return use

    codes = array("float64"), array("float64")
    assert "0d4004000000000000" in build(kernel(), *codes).text.lower()
    scope["FACTOR"] = 5.5
    assert "0d4016000000000000" in build(kernel(), *codes).text.lower()
    checked = build(kernel(), *codes, target=Target((9, 0), checked=True))
    assert {spot.part for spot in checked.spots} == {0, 1}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("checked", [False, True])
def test_what_may_fail_takes_a_record(wide, checked):
    @ab.kernel
    def look_up(i, y: ab.Out):
        y[i] = (1, 2)[i]

    target = Target((9, 0), checked, wide, flat=wide)
    found = build(look_up, array("float32"), target=target)
    assert found.slots[-1] == 2**32 - 1
    assert "IndexError" in [spot.what for spot in found.spots]
    assert ("y" in [spot.array.strip("'") for spot in found.spots]) is checked
    assert look_up.compile_cuda((1, (array("float32"),)), target).places


def test_a_division_by_zero_has_a_result():
    for dtype in "int32", "uint32":
        assert "selp" in build(divide, array(dtype), array(dtype), array(dtype)).text


def test_division_of_others_is_left_alone():
    from numba_cuda_mlir import cuda, types

    def plain(x):
        x[0] = x[1] // x[2]

    kind = types.void(types.Array(types.uint32, 1, "C"))
    with codegen._target(HOPPER.capability):
        text, _ = cuda.compile(plain, kind, device=False, abi="numba", output="ptx")
    assert "selp" not in text


def test_helpers_and_closures_are_compiled_in():
    def make(factor, function):
        @ab.kernel
        def scale(i, x: ab.In, y: ab.Out):
            y[i] = function(factor * x[i]) + math.sqrt(4.0)

        return scale

    images = {
        make(factor, function).compile_cuda((1, (array("float32"), array("float32"))), HOPPER).image
        for factor, function in [(2, twice), (3, twice), (2, quadruple)]
    }
    assert len(images) == 3


def test_branches_loops_and_early_returns_compile():
    @ab.kernel
    def collatz(i, flag: bool, y: ab.Out):
        if i == 0:
            y[i] = 0
            return
        steps, number = 0, i
        while number != 1 and flag:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
        y[i] = steps

    collatz.compile_cuda((1, (("scalar", "bool"), array("int64"))), HOPPER)


def test_scalars_are_cast_as_declared():
    @ab.kernel
    def scale(i, a: np.float32, b: float, c: complex, y: ab.Out):
        y[i] = a * b * c

    codes = (("scalar", "float64"), ("scalar", "int64"), ("scalar", "int64"), array("complex128"))
    scale.compile_cuda((1, codes), HOPPER)
    source = entry.source_of(scale.parameters, (1, codes), HOPPER)
    assert "a0 = float32(float64(a0_word))" in source
    assert "a1 = float64(int64(a1_word))" in source


def test_the_cache_knows_capabilities_apart(tmp_path):
    signature = 1, (("scalar", "float64"), array("float32"))
    first = ab.kernel(put._function).compile_cuda(signature, HOPPER)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == 1
    assert ab.kernel(put._function).compile_cuda(signature, HOPPER) == first
    ab.kernel(put._function).compile_cuda(signature, Target((8, 0)))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


def test_a_process_uses_what_another_compiled(run_python):
    script = """
        import sys
        import anabranch as ab
        from anabranch._launch.target import Target

        @ab.kernel
        def kernel(i, y: ab.Out):
            y[i] = i

        kernel.compile_cuda((1, (("array", "float32", 1, True, False),)), Target((9, 0)))
        print("numba_cuda_mlir" in sys.modules)
    """
    assert [run_python(script), run_python(script)] == ["True\n", "False\n"]


def test_threads_compile_at_once():
    kernels = [ab.kernel(function) for function in (saxpy._function, saxpy._function)]
    codes = ("scalar", "float64"), array("float32"), array("float32")
    found = []
    threads = [
        threading.Thread(target=lambda kernel=kernel: found.append(kernel.compile_cuda((1, codes), HOPPER)))
        for kernel in kernels * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


# On a device


@pytest.fixture
def cuda():
    found = ab.devices("cuda")
    if not found:
        pytest.skip("there is no CUDA device")
    with found[0]:
        yield found[0]


# The words exchanged are larger than the elements.
@pytest.mark.uninitialized
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16"])
def test_atomics_of_narrow_integers_lose_nothing(cuda, dtype):
    @ab.kernel
    def count(i, y: ab.InOut):
        ab.atomic_add(y, i % 4, 1)

    y = ab.zeros(6, dtype, device=cuda)
    ab.launch(count, 4 * 100, y[1:5])
    np.testing.assert_array_equal(y.numpy(), [0, 100, 100, 100, 100, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_atomic_extremes_pass_over_nan(cuda, dtype):
    @ab.kernel
    def extremes(i, x: ab.In, y: ab.InOut):
        ab.atomic_min(y, 0, x[i])
        ab.atomic_max(y, 1, x[i])

    x = ab.array(np.array([np.nan, 3, -2, np.nan, 5, -7], dtype), device=cuda)
    y = ab.full(2, np.nan, dtype, device=cuda)
    ab.launch(extremes, 6, x, y)
    np.testing.assert_array_equal(y.numpy(), [-7, 5])


def test_a_grid_may_be_smaller_than_the_index_space(cuda):
    y = ab.zeros(3_000_001, "int8", device=cuda)
    ab.launch(put, y.size, 1, y, block=32)
    assert (y.numpy() == 1).all()


def test_views_are_followed_by_their_strides(cuda):
    data = np.arange(60.0).reshape(5, 12)
    x, y = ab.array(data, device=cuda), ab.zeros((5, 4), "float64", device=cuda)
    ab.launch(assign, (5, 4), x[::-1, 1::3], y)
    np.testing.assert_array_equal(y.numpy(), data[::-1, 1::3])
