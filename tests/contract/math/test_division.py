"""Division of integers is NumPy's for all operands, also by zero and where the quotient does not fit."""

import operator

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

division = pytest.mark.parametrize("operation", [operator.floordiv, operator.mod])


def check(operation, a, b):
    """Compare with NumPy, of which each operand is an array or a number."""
    arrays = [ab.array(each) if isinstance(each, np.ndarray) else each for each in (a, b)]
    found, expected = operation(*arrays).numpy(), operation(a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def all_of(dtype):
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


@division
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_pairs_of_bytes(operation, dtype):
    numbers = all_of(dtype)
    check(operation, numbers[:, None], numbers)
    check(operation, *(pair.copy() for pair in np.broadcast_arrays(numbers[:, None], numbers)))


@division
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_all_numbers_of_a_dtype_with_one(operation, dtype):
    numbers = all_of(dtype)
    limits = np.iinfo(dtype)
    for one in {limits.min, limits.min + 1, -1, 0, 1, 2, 3, 7, 10, 100, limits.max // 2, limits.max - 1, limits.max}:
        if limits.min <= one:
            check(operation, numbers, one)
            check(operation, one, numbers)


@division
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_numbers_of_all_sizes(operation, dtype):
    rng = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    a, b = rng.integers(limits.min, limits.max, (2, 100_000), dtype, endpoint=True)
    b >>= rng.integers(0, limits.bits, b.size, dtype)
    a[:8], b[:8] = [limits.min, limits.max] * 4, np.array([-1, -1, 0, 0, 1, 1, 2, 2]).astype(dtype)
    check(operation, a, b)
    near = (a // np.where(b == 0, 1, b) * b).astype(dtype)  # multiples, and their neighbours
    check(operation, near, b)
    check(operation, near - np.ones(1, dtype), b)


@division
def test_in_place_and_of_two_dtypes(operation):
    numbers = all_of("int8")
    check(operation, numbers[:, None], all_of("uint8"))
    check(operation, numbers, all_of("int16")[::256])
    check(operation, np.array([True, False, True, False]), np.array([True, True, False, False]))
    in_place = operator.ifloordiv if operation is operator.floordiv else operator.imod
    array = ab.array(numbers)
    in_place(array, ab.array(numbers[::-1].copy()))
    np.testing.assert_array_equal(array.numpy(), operation(numbers, numbers[::-1]))
