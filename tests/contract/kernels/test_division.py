"""Division in Python kernels is NumPy's, also where others raise or leave open what comes out."""

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def divide(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = x[i] / y[i]


@ab.kernel
def divide_in_place(i, y: ab.In, out: ab.InOut):
    out[i] /= y[i]


@ab.kernel
def floor_divide(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = x[i] // y[i]


@ab.kernel
def floor_divide_by_a_number(i, x: ab.In, y, out: ab.Out):
    out[i] = x[i] // y


@ab.kernel
def remainder(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = x[i] % y[i]


def helper(x, y):
    return x // y


@ab.kernel
def floor_divide_in_a_helper(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = helper(x[i], y[i])


@ab.kernel
def both(i, x: ab.In, y: ab.In, quotient: ab.Out, rest: ab.Out):
    quotient[i], rest[i] = divmod(x[i], y[i])


@ab.kernel
def floor_divide_by_the_ufunc(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = np.floor_divide(x[i], y[i])


SIGNED = ["int8", "int16", "int32", "int64"]
PARTS = [0.0, -0.0, 1.0, -2.0, np.inf, np.nan]


def pairs(dtype):
    """All pairs of numbers at the ends of a dtype and around 0."""
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, -7, -1, 0, 1, 3, info.max]
    x, y = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    return x.ravel(), y.ravel()


def run(device, kernel, *arrays, dtype):
    out = ab.full(arrays[0].size, 77, dtype, device=device)
    ab.launch(kernel, arrays[0].size, *[ab.array(array, device=device) for array in arrays], out)
    return out.numpy()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("zero", [0, complex(-0.0, 0.0), complex(0.0, -0.0)], ids=str)
def test_a_complex_number_by_zero_is_numpy_s(device, dtype, zero):
    x = np.array([complex(real, imag) for real in PARTS for imag in PARTS], dtype)
    y = np.full_like(x, zero)
    with np.errstate(all="ignore"):
        expected = x / y
    np.testing.assert_array_equal(run(device, divide, x, y, dtype=dtype), expected)
    in_place = ab.array(x, device=device)
    ab.launch(divide_in_place, x.size, ab.array(y, device=device), in_place)
    np.testing.assert_array_equal(in_place.numpy(), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_other_complex_numbers_are_numpy_s_but_for_rounding(device, dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(2, 4000, 2)) * 10.0 ** rng.integers(-8, 8, (2, 4000, 2))).astype(
        "float32" if dtype == "complex64" else "float64"
    )
    x, y = (np.ascontiguousarray(part).view(dtype)[:, 0] for part in (x, y))
    np.testing.assert_allclose(
        run(device, divide, x, y, dtype=dtype), x / y, rtol=1e-5 if dtype == "complex64" else 1e-13
    )


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("kernel", [floor_divide, floor_divide_in_a_helper], ids=lambda kernel: kernel.name)
def test_integers_by_zero_and_minus_one_are_numpy_s(device, dtype, kernel):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(device, kernel, x, y, dtype=dtype), x // y)


@pytest.mark.parametrize("dtype", SIGNED)
def test_remainders_are_numpy_s(device, dtype):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(device, remainder, x, y, dtype=dtype), x % y)


def test_the_least_integer_by_a_number(device):
    x = np.array([np.iinfo("int64").min, 5], "int64")
    out = ab.zeros(2, "int64", device=device)
    ab.launch(floor_divide_by_a_number, 2, ab.array(x, device=device), -1, out)
    np.testing.assert_array_equal(out.numpy(), [x[0], -5])


def test_quotient_and_remainder_at_once(device):
    x, y = pairs("int64")
    quotient, rest = ab.zeros(x.size, "int64", device=device), ab.zeros(x.size, "int64", device=device)
    ab.launch(both, x.size, ab.array(x, device=device), ab.array(y, device=device), quotient, rest)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient.numpy(), x // y)
        np.testing.assert_array_equal(rest.numpy(), x % y)


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_ufunc_divides_likewise(device, dtype):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(device, floor_divide_by_the_ufunc, x, y, dtype=dtype), x // y)
