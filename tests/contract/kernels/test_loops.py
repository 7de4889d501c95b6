"""Loops, attributes and stores in parts of arrays mean in kernels what they mean in Python."""

import numpy as np
import pytest

import anabranch as ab

from .. import loops

pytestmark = pytest.mark.numba


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_loops_over_arrays_and_tuples(device, dtype):
    rng = np.random.default_rng(0)
    table, x, mask = rng.integers(1, 9, (4, 7)), rng.integers(0, 3, 9).astype(dtype), rng.random(9) < 0.5
    result = ab.zeros((4, loops.LOOPS), "float64", device=device)
    arrays = [ab.array(array, device=device) for array in (table, x, mask)]
    ab.launch(loops.loops, 4, *arrays, result)
    np.testing.assert_array_equal(result.numpy(), loops.of_loops(table, x.astype("float64"), mask))


def test_a_number_is_stored_in_parts_of_arrays(device):
    x = np.array([0.5, 2.5, 4.5])
    whole, parts = ab.zeros((2, 3), device=device), ab.zeros((3, loops.PARTS, 5), device=device)
    ab.launch(loops.fill_parts, 3, ab.array(x, device=device), whole, parts)
    for array, expected in zip([whole, parts], loops.of_parts(x, 5), strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


def test_attributes_of_arrays_and_numbers(device):
    rng = np.random.default_rng(0)
    table, z, mask = rng.random((4, 6)), rng.random(4) + 1j * rng.random(4), rng.random(4) < 0.5
    result = ab.zeros((4, loops.ATTRIBUTES), "float64", device=device)
    arrays = [ab.array(array, device=device) for array in (table, z, mask)]
    ab.launch(loops.attributes, 4, *arrays, result)
    np.testing.assert_allclose(result.numpy(), loops.of_attributes(table, z, mask), rtol=1e-14)


def test_reductions_are_those_of_numpy(device):
    arrays = loops.arrays_to_reduce()
    result = ab.zeros((4, loops.REDUCTIONS), "float64", device=device)
    ab.launch(loops.reductions, 4, *(ab.array(array, device=device) for array in arrays), result)
    np.testing.assert_array_equal(result.numpy(), loops.of_reductions(*arrays))


def test_booleans_are_numbers(device):
    arrays = loops.booleans_beside_numbers()
    result = ab.zeros((4, loops.BOOLEANS), "float64", device=device)
    ab.launch(loops.booleans, 4, *(ab.array(array, device=device) for array in arrays), result)
    np.testing.assert_array_equal(result.numpy(), loops.of_booleans(*arrays))


def test_arrays_and_rows_change_in_place(device):
    arrays = loops.arrays_to_change()
    table, bits, other = (ab.array(array, device=device) for array in arrays)
    y = ab.zeros(4, "float64", device=device)
    ab.launch(loops.changes, 4, table, bits, other, y)
    for array, expected in zip([table, bits, y], loops.of_changes(*arrays), strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.usefixtures("failures_forgotten")
def test_a_row_changes_by_one_of_its_length(device):
    @ab.kernel
    def add(i: int, x: ab.InOut, y: ab.In):
        row = x[i]
        row += y[1:]

    x = ab.zeros((3, 4), device=device)
    ab.synchronize(device)
    stream = ab.Stream(device)
    ab.launch(add, 3, x, ab.zeros(4, device=device, stream=stream), stream=stream)
    with pytest.raises(ab.KernelError, match=r"ValueError: .*broadcast"):
        stream.synchronize()


def test_a_change_that_the_array_cannot_hold_is_refused(device):
    @ab.kernel
    def halve(i: int, x: ab.InOut):
        row = x[i]
        row /= 2

    with pytest.raises(ab.CompileError, match=r"row /= 2\n  the array's dtype cannot hold the result"):
        ab.launch(halve, 3, ab.zeros((3, 4), "int32", device=device))


def test_what_is_declared_in_does_not_change(device):
    @ab.kernel
    def double(i: int, x: ab.In):
        row = x[i]
        row *= 2

    with pytest.raises(ab.CompileError, match=r"the array is declared ab\.In"):
        ab.launch(double, 3, ab.zeros((3, 4), device=device))


@ab.kernel
def largest_of_nothing(i: int, x: ab.In, y: ab.Out):
    y[i] = x[1:1].max()


@pytest.mark.usefixtures("failures_forgotten")
def test_nothing_has_no_maximum(device):
    x = ab.zeros(3, device=device)
    ab.synchronize(device)
    stream = ab.Stream(device)
    ab.launch(largest_of_nothing, 3, x, x.copy(stream), stream=stream)
    with pytest.raises(ab.KernelError, match="ValueError: zero-size array to reduction operation maximum"):
        stream.synchronize()
