"""Reductions of arrays are NumPy's: values, dtypes, shapes and errors."""

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

NAMES = ["sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax"]
TOLERANCES = {2: 1e-2, 4: 2e-4, 8: 1e-9}


def numbers(rng, shape, dtype, missing=True):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -5, 6, shape).astype(dtype)
    made = rng.normal(size=shape)
    if kind == "c":
        made = made + 1j * rng.normal(size=shape)
    if missing and made.size and rng.random() < 0.3:
        made.flat[rng.integers(made.size)] = np.nan
    return made.astype(dtype)


def check(name, x, array, axis=None, keepdims=False):
    expected = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
    found = getattr(array, name)(axis, keepdims=keepdims).numpy()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fc":
        size = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
        np.testing.assert_allclose(found, expected, rtol=TOLERANCES[size], atol=10 * TOLERANCES[size])
    else:
        np.testing.assert_array_equal(found, expected)


# Each with every other dtype: each pair is a kernel of its own, which takes half a second to compile.
PAIRS = [(name, dtype) for name in NAMES for dtype in DTYPES]
EVEN, ODD = ([pair for pair in PAIRS if (NAMES.index(pair[0]) + DTYPES.index(pair[1])) % 2 == rest] for rest in (0, 1))


@pytest.mark.parametrize(("name", "dtype"), EVEN)
def test_all_elements_are_reduced(name, dtype):
    x = numbers(np.random.default_rng(0), (5, 9), dtype)
    check(name, x, ab.array(x))


@pytest.mark.parametrize("name", NAMES)
def test_axes_are_reduced(name):
    rng = np.random.default_rng(1)
    x = numbers(rng, (3, 40, 5), "float32")
    array = ab.array(x)
    for axis in (0, 1, 2, -1):
        check(name, x, array, axis)
        check(name, x, array, axis, keepdims=True)
        check(name, x[::2, ::-1], array[::2, ::-1], axis)
    if not name.startswith("arg"):
        for axes in ((0, 1), (0, 2), (2, -2), (0, 1, 2), ()):
            check(name, x, array, axes)


@pytest.mark.parametrize(("name", "dtype"), ODD)
def test_one_element_for_each_result_is_that_element(name, dtype):
    x = numbers(np.random.default_rng(5), (2, 1, 3, 1, 2, 3), dtype)
    x[0, 0, 0] = -0.0 if np.dtype(dtype).kind == "f" else 0
    array = ab.array(x)
    for axis in (1, 3):
        check(name, x, array, axis)
        check(name, x[:, :, ::-1, :, :, ::2], array[:, :, ::-1, :, :, ::2], axis, keepdims=True)
    check(name, x[:1, 0, 0, 0, 0, 0], array[:1, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("position", [0, 1, 511, 512, 16_383, 16_384, 69_999])
@pytest.mark.parametrize("name", ["min", "max", "any", "all", "argmin", "argmax"])
def test_the_one_other_truth_value_is_found_wherever_it_is(name, position):
    for value in (False, True):
        x = np.full(70_000, value)
        check(name, x, ab.array(x))
        x[position] = not value
        check(name, x, ab.array(x))
        rows = np.tile(x, 3).reshape(100, 2100)
        check(name, rows, ab.array(rows), 1)
        check(name, rows[:, ::-1], ab.array(rows)[:, ::-1], 1)


@pytest.mark.parametrize("name", ["sum", "min", "argmax", "mean"])
@pytest.mark.parametrize("shape", [(70_000,), (3, 30_000), (30_000, 3), (200, 700), (70, 2, 900)], ids=str)
def test_long_axes_are_reduced_in_parts(name, shape):
    x = numbers(np.random.default_rng(2), shape, "float32", missing=False)
    array = ab.array(x)
    for axis in (None, *range(len(shape))):
        check(name, x, array, axis)


# On a GPU a warp, four or eight share a row, depending on how many there are and how long they are.
@pytest.mark.parametrize("shape", [(5, 20), (5, 400), (2100, 100), (600, 3000), (20, 9000)], ids=str)
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("name", ["sum", "argmin"])
def test_rows_of_any_number_and_length_are_reduced(name, dtype, shape):
    x = numbers(np.random.default_rng(4), shape, dtype, missing=False)
    array = ab.array(x)
    check(name, x, array, 1)
    check(name, x[:, 1:], array[:, 1:], 1)
    check(name, x[:, ::2], array[:, ::2], 1)


@pytest.mark.parametrize("position", [0, 1, 511, 512, 20_000, 69_999])
def test_nan_is_found_wherever_it_is(position):
    x = np.zeros(70_000, "float32")
    x[position] = np.nan
    array = ab.array(x)
    assert np.isnan(array.min().numpy())
    assert np.isnan(array.max().numpy())
    assert array.argmin().numpy() == array.argmax().numpy() == position


def test_the_first_of_equal_elements_is_found():
    x = np.zeros(70_000, "int32")
    x[[600, 40_000]] = 1
    assert ab.array(x).argmax().numpy() == 600
    assert ab.array(x).argmin().numpy() == 0


def test_a_long_sum_is_accurate():
    x = np.random.default_rng(3).random(3_000_000, "float32")
    exact = x.sum(dtype="float64")
    assert abs(float(ab.array(x).sum().numpy()) - exact) <= 2 * np.spacing(np.float32(exact))


def test_a_sum_is_the_same_each_time():
    array = ab.array(np.random.default_rng(4).normal(size=1_000_000).astype("float32"))
    assert len({array.sum().numpy().item() for _ in range(10)}) == 1


def test_results_stay_on_the_device(device):
    result = ab.ones((2, 3)).sum()
    assert (result.device, result.shape) == (device, ())
    np.testing.assert_array_equal((result / 2).numpy(), 3)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_reduced_as_in_numpy(name, shape):
    x = np.zeros(shape, "float32")
    for axis in (None, *range(len(shape))):
        try:
            expected = getattr(np, name)(x, axis=axis)
        except ValueError:
            with pytest.raises(ValueError, match="of no elements"):
                getattr(ab.array(x), name)(axis)
            continue
        np.testing.assert_array_equal(getattr(ab.array(x), name)(axis).numpy(), expected)


@pytest.mark.parametrize("name", ["sum", "max", "any", "argmin"])
def test_an_array_of_no_dimension_takes_the_axes_that_numpy_takes(name):
    for axis in (0, -1):
        found = getattr(ab.array(5), name)(axis)
        np.testing.assert_array_equal(found.numpy(), getattr(np.array(5), name)(axis))
    for axis in (1, (0,)):
        with pytest.raises((np.exceptions.AxisError, TypeError)):
            getattr(ab.array(5), name)(axis)


def test_axes_that_are_not_there_are_refused():
    array = ab.ones((2, 3))
    with pytest.raises(np.exceptions.AxisError):
        array.sum(2)
    with pytest.raises(ValueError, match="named twice"):
        array.sum((0, -2))
    with pytest.raises(TypeError, match="axis is an int"):
        array.sum(1.0)
    with pytest.raises(TypeError, match="one number"):
        array.argmax((0, 1))


@pytest.mark.parametrize("name", NAMES)
def test_numpy_s_functions_call_the_methods(name):
    x = np.arange(1.0, 7).reshape(2, 3)
    result = getattr(np, name)(ab.array(x), axis=1)
    assert isinstance(result, ab.Array)
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(x, axis=1))


def test_results_are_new_arrays_of_numpy_s_dtype():
    with pytest.raises(TypeError, match="new array of NumPy's dtype"):
        ab.ones(3).sum(out=ab.empty(()))
    with pytest.raises(TypeError, match="new array of NumPy's dtype"):
        np.mean(ab.ones(3), dtype="float64")
    with pytest.raises(TypeError, match="convert the array first, with astype"):
        np.sum(ab.ones(3), dtype="float64")
