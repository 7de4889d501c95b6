"""NumPy's functions of numbers in kernels give what they give of arrays, special values included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

FLOATS = [np.cbrt, np.exp2, np.expm1, np.log1p, np.rint, np.fabs, np.deg2rad, np.rad2deg, np.log2, np.log10]
FLOATS += [np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.sinh, np.cosh]
COMPLEX = [np.sqrt, np.exp, np.log, np.sin, np.cos, np.tan, np.tanh]
NUMBERS = [np.negative, np.positive, np.conjugate, np.square, np.absolute]
NUMBERS += [np.isfinite, np.isinf, np.isnan, np.logical_not]
REAL = [np.sign, np.floor, np.ceil, np.trunc, np.signbit]
UNARY = {
    "float32": FLOATS + COMPLEX + NUMBERS + [*REAL, np.reciprocal],
    "float64": FLOATS + COMPLEX + NUMBERS + [*REAL, np.reciprocal],
    "int32": [*FLOATS, *COMPLEX, *NUMBERS, np.sign, np.floor, np.ceil, np.trunc, np.invert],
    "uint32": [*COMPLEX, *NUMBERS, np.sign, np.floor, np.invert],
    "bool": [np.logical_not, np.invert, np.absolute],
    "complex64": COMPLEX + NUMBERS,
}
ANY_TWO = [np.add, np.subtract, np.multiply, np.true_divide, np.equal, np.not_equal]
ANY_TWO += [np.logical_and, np.logical_or, np.logical_xor]
REAL_TWO = [np.maximum, np.minimum, np.fmax, np.fmin, np.less, np.less_equal, np.greater, np.greater_equal]
REAL_TWO += [np.floor_divide, np.remainder, np.fmod]
FLOATS_TWO = [np.arctan2, np.hypot, np.copysign, np.power, np.float_power, np.nextafter, np.logaddexp, np.logaddexp2]
INTEGERS_TWO = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.power]
BINARY = {
    "float32": ANY_TWO + REAL_TWO + FLOATS_TWO,
    "float64": ANY_TWO + REAL_TWO + FLOATS_TWO,
    "int32": ANY_TWO + REAL_TWO + INTEGERS_TWO,
    "uint32": ANY_TWO + REAL_TWO + INTEGERS_TWO,
    "bool": [np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor],
    "complex64": ANY_TWO,
}


def values(dtype):
    kind = np.dtype(dtype).kind
    rng = np.random.default_rng(0)
    if kind == "b":
        return np.array([False, True])
    if kind == "u":
        return np.array([0, 1, 2, 3, 7, 40_000, 2**32 - 1], dtype)
    if kind == "i":
        return np.array([0, 1, -1, 2, 3, -5, 7, 1000, -(2**31), 2**31 - 1], dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    drawn = rng.uniform(-3, 3, 12)
    if kind == "f":
        return np.array([*special, *drawn], dtype)
    return np.array([0, 1, -1, 1j, *(drawn + 1j * rng.uniform(-3, 3, 12))], dtype)


def pairs(dtype):
    left, right = map(np.array, zip(*itertools.product(values(dtype), repeat=2), strict=True))
    return left.astype(dtype), right.astype(dtype)


def agree(function, found, expected):
    if expected.dtype.kind in "fc":
        # Within 4 units of the last place.
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps, err_msg=function.__name__)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=function.__name__)


def four_at_a_time(functions):
    """Yield them in groups of four, the last filled up: one kernel computes a group."""
    for begin in range(0, len(functions), 4):
        group = functions[begin : begin + 4]
        yield [*group, *[group[-1]] * (4 - len(group))]


def of_one(f, g, h, k):
    @ab.kernel
    def apply(i, x: ab.In, a: ab.Out, b: ab.Out, c: ab.Out, d: ab.Out):
        a[i], b[i], c[i], d[i] = f(x[i]), g(x[i]), h(x[i]), k(x[i])

    return apply


def of_two(f, g, h, k):
    @ab.kernel
    def apply(i, x: ab.In, y: ab.In, a: ab.Out, b: ab.Out, c: ab.Out, d: ab.Out):
        a[i], b[i], c[i], d[i] = f(x[i], y[i]), g(x[i], y[i]), h(x[i], y[i]), k(x[i], y[i])

    return apply


def check(kernel, functions, *operands):
    expected = [function(*operands) for function in functions]
    found = [ab.empty(operands[0].shape, each.dtype) for each in expected]
    ab.launch(kernel, operands[0].size, *map(ab.array, operands), *found)
    for function, got, wanted in zip(functions, found, expected, strict=True):
        agree(function, got.numpy(), wanted)


@pytest.mark.parametrize("dtype", UNARY)
def test_functions_of_one_number_are_numpy_s(device, dtype):
    for group in four_at_a_time(UNARY[dtype]):
        check(of_one(*group), group, values(dtype))


@pytest.mark.parametrize("dtype", BINARY)
def test_functions_of_two_numbers_are_numpy_s(device, dtype):
    x, y = pairs(dtype)
    small = y % 8 if np.dtype(dtype).kind in "iu" else y
    for group in four_at_a_time(BINARY[dtype]):
        bounded = {np.power, np.left_shift, np.right_shift}.intersection(group)
        check(of_two(*group), group, x, small if bounded else y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_quotient_and_its_rest_are_numpy_s(device, dtype):
    @ab.kernel
    def apply(i, x: ab.In, y: ab.In, quotients: ab.Out, rests: ab.Out):
        quotients[i], rests[i] = divmod(x[i], y[i])

    rng = np.random.default_rng(0)
    x = rng.uniform(-100, 100, 200).astype(dtype)
    y = rng.choice([-7, -3, 2, 5, 9], 200).astype(dtype)
    quotients, rests = ab.empty(200, dtype), ab.empty(200, dtype)
    ab.launch(apply, 200, ab.array(x), ab.array(y), quotients, rests)
    np.testing.assert_array_equal(quotients.numpy(), x // y)
    np.testing.assert_array_equal(rests.numpy(), x % y)


def test_powers_of_integers_wrap_around_and_are_exact():
    @ab.kernel
    def apply(i, x: ab.In, n: ab.In, y: ab.Out, z: ab.Out):
        y[i] = x[i] ** n[i]
        z[i] = x[i]
        z[i] **= n[i]

    x = np.array([3, 7, -2, 10, 1, -1, -1, 5], "int64")
    n = np.array([39, 22, 63, 25, -3, -3, -4, -1], "int64")
    y, z = ab.empty(8, "int64"), ab.empty(8, "int64")
    ab.launch(apply, 8, ab.array(x), ab.array(n), y, z)
    expected = [*(x[:4] ** n[:4]).tolist(), 1, -1, 1, 0]
    assert y.numpy().tolist() == z.numpy().tolist() == expected


def test_the_reciprocal_of_an_integer_is_its_whole_part():
    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = np.reciprocal(x[i])

    for dtype in ("int32", "int64", "uint32"):
        info = np.iinfo(dtype)
        x = np.array([1, 2, info.max, info.min or 3, -1 if info.min else 5], dtype)
        y = ab.empty(x.shape, dtype)
        ab.launch(apply, x.size, ab.array(x), y)
        np.testing.assert_array_equal(y.numpy(), np.reciprocal(x))


def test_operands_of_different_types_have_numpy_s_result():
    @ab.kernel
    def apply(i, x: ab.In, n: ab.In, y: ab.Out, m: ab.Out):
        y[i] = np.maximum(x[i], n[i]) + np.minimum(2, x[i]) * np.sqrt(np.square(n[i]))
        m[i] = n[i] ** np.minimum(np.absolute(n[i]), 3)

    x, n = np.array([-1.5, 0.25, 7.0], "float32"), np.array([4, -3, 2], "int32")
    y, m = ab.empty(3, "float64"), ab.empty(3, "int64")
    ab.launch(apply, 3, ab.array(x), ab.array(n), y, m)
    np.testing.assert_allclose(y.numpy(), np.maximum(x, n) + np.minimum(2, x) * np.sqrt(np.square(n)))
    np.testing.assert_array_equal(m.numpy(), [64, -27, 4])
