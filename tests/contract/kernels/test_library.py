"""Functions of Python's, `math` and NumPy mean in kernels what they mean in Python, also those that no compiler has."""

import math

import numpy as np
import pytest

import anabranch as ab

from .. import library

pytestmark = pytest.mark.numba


def run(kernel, columns, arrays, device):
    result = ab.zeros((len(arrays[0]), columns), "float64", device=device)
    ab.launch(kernel, len(arrays[0]), *(ab.array(array, device=device) for array in arrays), result)
    return result.numpy()


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float64", 1e-14)])
def test_functions_of_floats(device, dtype, rtol):
    arrays = library.numbers(dtype)
    found = run(library.floats, library.FLOATS, arrays, device)
    np.testing.assert_allclose(found, library.of_floats(*arrays), rtol=rtol, atol=rtol)


def test_functions_of_integers(device):
    arrays = library.whole_numbers()
    np.testing.assert_array_equal(run(library.integers, library.INTEGERS, arrays, device), library.of_integers(*arrays))


def test_named_tuples(device):
    arrays = library.numbers()
    np.testing.assert_allclose(run(library.named, library.NAMED, arrays, device), library.of_named(*arrays))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_shifts(device, dtype):
    arrays = library.shifted(dtype)
    found = run(library.shifts, library.SHIFTS, arrays, device)
    wide = arrays if dtype != "int32" else [array.astype("int64") for array in arrays]  # as operators of kernels do
    expected = library.of_shifts(*wide)
    expected[:, 2], expected[:, 3] = np.left_shift(*arrays), np.right_shift(*arrays)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "rtol"), [("complex64", 1e-5), ("complex128", 1e-13)])
def test_powers_of_complex_numbers(device, dtype, rtol):
    z, n = library.complex_numbers(dtype)
    result = ab.zeros((z.size, library.POWERS), "complex128", device=device)
    ab.launch(library.powers, z.size, ab.array(z, device=device), ab.array(n, device=device), result)
    expected = library.of_powers(z, n)
    np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(result.numpy()[:, 0], expected[:, 0])


def test_the_least_exponent_ends(device):
    @ab.kernel
    def apply(i, z: ab.In, n: ab.In, y: ab.Out):
        y[i] = z[i] ** n[i]

    z = np.array([2 + 0j, 1 + 0j, 0.5j, 2j, 2 + 1j])
    n = np.array([-(2**63), -(2**63), -1, -2, -3])
    y = ab.zeros(5, "complex128", device=device)
    ab.launch(apply, 5, ab.array(z, device=device), ab.array(n, device=device), y)
    np.testing.assert_allclose(y.numpy()[1:], [1, -2j, -0.25, (2 + 1j) ** -3], rtol=1e-14, atol=1e-14)


def test_values_that_may_be_none(device):
    arrays = library.numbers()
    found = run(library.optional, library.OPTIONAL, arrays, device)
    np.testing.assert_array_equal(found, library.of_optional(*arrays))


@pytest.mark.usefixtures("failures_forgotten")
def test_none_in_an_operator_fails_the_stream(device):
    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = library.doubled(x[i]) + 1

    stream = ab.Stream(device)
    ab.launch(apply, 3, ab.zeros(3, stream=stream), ab.zeros(3, stream=stream), stream=stream)
    with pytest.raises(ab.KernelError, match="got None"):
        stream.synchronize()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_that_do_not_fit_in_small_integers_wrap_at_every_index(device, dtype):
    @ab.kernel
    def convert(i, x: ab.In, a: ab.Out, b: ab.Out, c: ab.Out, d: ab.Out):
        a[i] = x[i]
        b[i] = x[i]
        c[i] = x[i]
        d[i] = np.uint8(x[i]) - np.int16(x[i])

    x = np.resize(np.array([-20.0, -1.5, 254.9, 256, 300, -129, 40000, 65000, -40000, 0.9, -0.9], dtype), 37 * 11)
    found = [ab.zeros(x.size, kind, device=device) for kind in ("uint8", "int8", "uint16", "int64")]
    ab.launch(convert, x.size, ab.array(x, device=device), *found)
    whole = x.astype("int32")
    expected = [whole.astype(kind) for kind in ("uint8", "int8", "uint16")]
    expected.append(expected[0].astype("int64") - whole.astype("int16"))
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_hyperbolic_tangent_of_large_complex_numbers_is_one(device, dtype):
    @ab.kernel
    def apply(i, z: ab.In, y: ab.Out):
        y[i] = np.tanh(z[i])

    z = np.array([1 + 1j, -3 + 2j, 21 + 1j, 23 - 1j, 50 + 1j, 400 + 2j, -800 - 1j, 1e30 + 1j], dtype)
    y = ab.zeros(z.size, dtype, device=device)
    ab.launch(apply, z.size, ab.array(z, device=device), y)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y.numpy(), np.tanh(z), rtol=8 * eps, atol=8 * eps)


def test_helpers_that_numba_has_decorated(device):
    numba = pytest.importorskip("numba")

    @numba.njit
    def doubled(value):
        return 2 * value

    @ab.kernel
    def apply(i, x: ab.In, y: ab.Out):
        y[i] = doubled(x[i]) + library.stepped(doubled, x[i], 1)

    x = ab.array(np.arange(4.0), device=device)
    y = ab.zeros(4, "float64", device=device)
    ab.launch(apply, 4, x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(4) * (2 + library.stepped(lambda value: 2 * value, 1, 1)))


def test_special_values_have_the_results_of_c(device):
    special = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan]

    @ab.kernel
    def apply(index, x: ab.In, y: ab.Out):
        i, j = index
        y[i, j, 0] = math.fmod(x[i], x[j])
        y[i, j, 1] = math.remainder(x[i], x[j])
        y[i, j, 2] = math.isclose(x[i], x[j])
        y[i, j, 3], y[i, j, 4] = math.modf(x[i])
        y[i, j, 5] = np.clip(x[i], x[j], 1.0)

    y = ab.zeros((7, 7, 6), "float64", device=device)
    ab.launch(apply, (7, 7), ab.array(np.array(special), device=device), y)
    for i, a in enumerate(special):
        for j, b in enumerate(special):
            with np.errstate(invalid="ignore"):
                rest = np.fmod(a, b)
            is_defined = math.isfinite(a) and b != 0 and b == b
            nearest = math.remainder(a, b) if is_defined else math.nan
            expected = [rest, nearest, math.isclose(a, b), *math.modf(a), np.clip(a, b, 1.0)]
            np.testing.assert_array_equal(y.numpy()[i, j], expected, err_msg=f"{a}, {b}")


def test_roots_of_integers_are_exact(device):
    @ab.kernel
    def apply(i, n: ab.In, y: ab.Out):
        y[i] = math.isqrt(n[i])

    roots = [1, 2, 3, 2**16, 94906266, 3037000499]
    n = np.array([*(r * r + d for r in roots for d in (-1, 0, 1)), 2**63 - 1, 0, -4])
    y = ab.zeros(n.size, "int64", device=device)
    ab.launch(apply, n.size, ab.array(n, device=device), y)
    assert y.numpy().tolist() == [*map(math.isqrt, n[:-1].tolist()), 0]


def test_integers_without_a_result_have_none(device):
    @ab.kernel
    def apply(i, n: ab.In, y: ab.Out):
        y[i, 0] = math.factorial(n[i])
        y[i, 1] = math.comb(n[i], 3)
        y[i, 2] = math.perm(2, n[i])
        y[i, 3] = math.lcm(n[i], 0)

    y = ab.zeros((2, 4), "int64", device=device)
    ab.launch(apply, 2, ab.array(np.array([-3, 2]), device=device), y)
    assert y.numpy().tolist() == [[0, 0, 0, 0], [2, 0, 2, 0]]


def test_the_order_of_numbers_is_searched(device):
    @ab.kernel
    def apply(i, x: ab.In, y: ab.In, found: ab.Out):
        found[i] = np.searchsorted(x, y[i])

    x = np.array([1.0, 2.0, 2.0, 5.0, math.nan])
    y = np.array([0.0, 1.0, 2.0, 3.0, 6.0, math.nan, math.inf])
    found = ab.zeros(y.size, "int64", device=device)
    ab.launch(apply, y.size, ab.array(x, device=device), ab.array(y, device=device), found)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x, y))
