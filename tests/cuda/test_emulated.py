"""What kernels compute in the code that is compiled for CUDA, without a GPU."""

import itertools

import numpy as np
import pytest

import anabranch as ab
from anabranch._math import rules
from anabranch._memory.dtype import names

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
pytest.importorskip("llvmlite")

from ..contract import blocks, library, loops, parts
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


def _run(kernel, dims, arrays, *results, **kind):
    arrays = [ab.array(array, device="cpu") for array in arrays]
    results = [ab.array(result, device="cpu") for result in results]
    ab.synchronize("cpu")
    emulate(kernel, dims, *arrays, *results, **kind)
    return [result.numpy() for result in results]


@pytest.mark.parametrize("kind", KINDS)
def test_loops_are_those_of_python(kind):
    rng = np.random.default_rng(0)
    table, x, mask = rng.integers(1, 9, (4, 7)), rng.integers(0, 3, 9).astype("float32"), rng.random(9) < 0.5
    (result,) = _run(loops.loops, (4,), [table, x, mask], np.zeros((4, loops.LOOPS)), **KINDS[kind])
    np.testing.assert_array_equal(result, loops.of_loops(table, x, mask))


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_filled_as_in_python(kind):
    x = np.array([0.5, 2.5, 4.5])
    found = _run(loops.fill_parts, (3,), [x], np.zeros((2, 3)), np.zeros((3, loops.PARTS, 5)), **KINDS[kind])
    for array, expected in zip(found, loops.of_parts(x, 5), strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_are_those_of_numpy(kind):
    rng = np.random.default_rng(0)
    table, z, mask = rng.random((4, 6)), rng.random(4) + 1j * rng.random(4), rng.random(4) < 0.5
    (result,) = _run(loops.attributes, (4,), [table, z, mask], np.zeros((4, loops.ATTRIBUTES)), **KINDS[kind])
    np.testing.assert_allclose(result, loops.of_attributes(table, z, mask), rtol=1e-14)


def test_stores_in_parts_are_those_of_numpy():
    x, points, result = parts.arrays()
    (found,) = _run(parts.stores, (5,), [x, points], result)
    np.testing.assert_array_equal(found, parts.of_stores(x, points, result))


@pytest.mark.parametrize(
    ("kernel", "columns", "arrays", "of"),
    [
        (library.floats, library.FLOATS, library.numbers(), library.of_floats),
        (library.integers, library.INTEGERS, library.whole_numbers(), library.of_integers),
        (library.shifts, library.SHIFTS, library.shifted("int64"), library.of_shifts),
        (library.shifts, library.SHIFTS, library.shifted("uint64"), library.of_shifts),
        (library.optional, library.OPTIONAL, library.numbers(), library.of_optional),
        (library.named, library.NAMED, library.numbers(), library.of_named),
    ],
    ids=["floats", "integers", "shifts", "shifts of unsigned", "None", "named tuples"],
)
def test_functions_are_those_of_python(kernel, columns, arrays, of):
    (result,) = _run(kernel, (8,), arrays, np.zeros((8, columns)))
    np.testing.assert_allclose(result, of(*arrays), rtol=1e-14, atol=1e-14)


def test_powers_of_complex_numbers():
    z, n = library.complex_numbers()
    (result,) = _run(library.powers, (6,), [z, n], np.zeros((6, library.POWERS), "complex128"))
    np.testing.assert_allclose(result, library.of_powers(z, n), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(result[:, 0], z**2)


def test_reductions_are_those_of_a_cpu():
    arrays = loops.arrays_to_reduce()
    (result,) = _run(loops.reductions, (4,), arrays, np.zeros((4, loops.REDUCTIONS)))
    np.testing.assert_array_equal(result, loops.of_reductions(*arrays))


def test_booleans_are_numbers():
    arrays = loops.booleans_beside_numbers()
    (result,) = _run(loops.booleans, (4,), arrays, np.zeros((4, loops.BOOLEANS)))
    np.testing.assert_array_equal(result, loops.of_booleans(*arrays))


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_and_rows_change_in_place(kind):
    arrays = loops.arrays_to_change()
    results = [ab.array(array, device="cpu") for array in (*arrays, np.zeros(4))]
    ab.synchronize("cpu")
    emulate(loops.changes, (4,), *results, **KINDS[kind])
    for number, expected in zip((0, 1, 3), loops.of_changes(*arrays), strict=True):
        np.testing.assert_array_equal(results[number].numpy(), expected)


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
