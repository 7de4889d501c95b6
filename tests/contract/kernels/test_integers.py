"""Operators on integers in Python kernels compute as Python's do, where the result fits into 64 bits."""

import itertools

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

SMALL = ["uint8", "uint16", "uint32"]


@ab.kernel
def each_operator(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i, 0] = x[i] + y[i]
    out[i, 1] = x[i] - y[i]
    out[i, 2] = x[i] // y[i]
    out[i, 3] = x[i] % y[i]
    out[i, 4] = x[i] & y[i]
    out[i, 5] = x[i] | y[i]
    out[i, 6] = x[i] ^ y[i]
    out[i, 7] = x[i] << (y[i] & 7)
    out[i, 8] = x[i] >> (y[i] & 7)
    out[i, 9] = ~x[i]
    out[i, 10] = -x[i]


def by_python(x, y):
    return [x + y, x - y, x // y, x % y, x & y, x | y, x ^ y, x << (y & 7), x >> (y & 7), ~x, -x]


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [(*pair, "int64") for pair in itertools.product(SMALL, SMALL)] + [("uint8",) * 2 + ("float64",)],
)
def test_small_unsigned_numbers_give_signed_ones(device, left, right, dtype):
    ends = ([0, 1, 3, 200, int(np.iinfo(kind).max)] for kind in (left, right))
    pairs = [(x, y) for x, y in itertools.product(*ends) if y]
    x, y = (ab.array(np.array(side, kind)) for side, kind in zip(zip(*pairs, strict=True), (left, right), strict=True))
    out = ab.empty((len(pairs), 11), dtype)
    ab.launch(each_operator, len(pairs), x, y, out)
    assert out.tolist() == [by_python(*pair) for pair in pairs]


@ab.kernel
def in_programs(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i, 0] = min(255, abs(x[i] - y[i]))
    out[i, 1] = 1 if x[i] - y[i] > 50 else 0
    out[i, 2] = 0.5 * (x[i] - y[i])
    total = x[i]
    total -= y[i]
    out[i, 3] = -total if total < 0 else total
    product = 0
    if x[i] > 0:
        product = x[i] * y[i]
    out[i, 4] = product >> 1


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_differences_of_bytes_are_negative_where_they_should(device, dtype):
    pairs = [(3, 5), (200, 100), (10, 10), (0, 255), (255, 255)]
    x, y = (ab.array(np.array(side, dtype)) for side in zip(*pairs, strict=True))
    out = ab.empty((len(pairs), 5), "float64")
    ab.launch(in_programs, len(pairs), x, y, out)
    expected = [
        [min(255, abs(a - b)), int(a - b > 50), 0.5 * (a - b), abs(a - b), a * b >> 1 if a else 0] for a, b in pairs
    ]
    assert out.tolist() == expected


@ab.kernel
def index_by_a_sum(i, x: ab.In, y: ab.In, counts: ab.InOut):
    place = min(15, x[i] + y[i])
    ab.atomic_add(counts, place, 1)


def test_a_sum_of_bytes_is_an_index(device):
    x = np.arange(32, dtype="uint8")
    counts = ab.zeros(16, "int32")
    ab.launch(index_by_a_sum, 32, ab.array(x), ab.array(x), counts)
    assert counts.tolist() == np.bincount(np.minimum(15, 2 * x.astype(int)), minlength=16).tolist()


@ab.kernel
def multiply(i, x: ab.In, y: ab.In, out: ab.Out):
    out[i] = x[i] * y[i]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_product_that_needs_all_bits_is_unsigned(device, dtype):
    x = np.array([2**32 - 1, 2**31, 3], dtype)
    out = ab.empty(3, "float64")
    ab.launch(multiply, 3, ab.array(x), ab.array(x), out)
    assert out.tolist() == [float(int(each) * int(each)) for each in x]


@ab.kernel
def power(i, x: ab.In, exponent, out: ab.Out):
    out[i, 0] = x[i] ** exponent
    out[i, 1] = x[i] ** -1
    out[i, 2] = x[i] ** -12
    out[i, 3] = x[i] ** 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_to_a_negative_power_is_infinite(device, dtype):
    x = np.array([0.0, -0.0, 2.0, -4.0, np.inf, 1e-30], dtype)
    out = ab.empty((6, 4), dtype)
    ab.launch(power, 6, ab.array(x), -3, out)
    with np.errstate(all="ignore"):
        expected = np.stack([x**-3, x**-1, x**-12, x**3], axis=1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    assert np.array_equal(np.signbit(out.numpy()), np.signbit(expected))


FACTOR = 6364136223846793005


@ab.kernel
def that_overflow(i, x: ab.In, out: ab.Out):
    product = i * FACTOR
    out[i, 0] = product % 1000
    size = product
    if size < 0:
        size = -size
    out[i, 1] = size % 1000
    out[i, 2] = product >> 60
    out[i, 3] = abs(product) % 1000
    out[i, 4] = x[i] * 2 // 2
    out[i, 5] = 1 if x[i] + 1 > x[i] else 0
    out[i, 6] = 3 // ((x[i] - x[i]) - x[i])
    hashed = 5381
    for k in range(i + 20):
        hashed = hashed * 33 + k
    out[i, 7] = hashed // 7


def wrapped(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("bounds", [False, True])
def test_sums_and_products_wrap_around(device, bounds):
    """Also where a compiler that assumed no overflow could tell a sign, or undo one operation by another."""
    values = [2**63 - 1, 2**62, -(2**63), 5, 1, 2]
    with ab.hazards("auto", bounds=bounds):
        out = ab.empty((len(values), 8), "int64")
        ab.launch(that_overflow, len(values), ab.array(np.array(values)), out)
    expected = []
    for i, x in enumerate(values):
        product, twice = wrapped(i * FACTOR), wrapped(2 * x)
        hashed = 5381
        for k in range(i + 20):
            hashed = wrapped(hashed * 33 + k)
        negative = wrapped(-x)
        row = [product % 1000, abs(product) % 1000, product >> 60, abs(product) % 1000]
        expected.append([*row, twice // 2, int(wrapped(x + 1) > x), 3 // negative, hashed // 7])
    assert out.tolist() == expected
