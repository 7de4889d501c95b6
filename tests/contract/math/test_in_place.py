"""Operators in place write into the same memory, with NumPy's rules for the dtype and the shape."""

import operator

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

OPERATIONS = [
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv),
    *(operator.ifloordiv, operator.imod, operator.ipow),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_the_result_is_in_the_same_memory(operation):
    x, y = np.arange(1, 7, dtype="float32").reshape(2, 3), np.float32([1, 2, 3])
    array = ab.array(x)
    address = array.ptr
    result = operation(array, ab.array(y))
    assert result is array
    assert array.ptr == address
    np.testing.assert_allclose(array.numpy(), operation(x, y), rtol=1e-6)


def test_a_number_keeps_the_dtype():
    array = ab.ones(4, "int8")
    array *= 3
    array -= np.int64(1)
    assert array.dtype == "int8"
    np.testing.assert_array_equal(array.numpy(), [2, 2, 2, 2])


def test_views_are_written_through():
    x = np.arange(12, dtype="float64").reshape(3, 4)
    array = ab.array(x)
    part = array[::2, 1::2]
    part -= 100
    x[::2, 1::2] -= 100
    np.testing.assert_array_equal(array.numpy(), x)


def test_an_array_may_be_both_operands():
    array = ab.full(3, 2.0)
    array *= array
    np.testing.assert_array_equal(array.numpy(), [4, 4, 4])


def test_a_float64_is_rounded_to_a_float16_once():
    x = np.array([1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-30, 1e9])
    array, expected = ab.zeros(4, "float16"), np.zeros(4, "float16")
    array += ab.array(x)
    with np.errstate(over="ignore"):
        expected += x
    np.testing.assert_array_equal(array.numpy(), expected)


def test_overlapping_operands_are_read_first():
    x = np.arange(1000, dtype="int64")
    array = ab.array(x)
    later = array[1:]
    later += array[:-1]
    x[1:] += x[:-1].copy()
    np.testing.assert_array_equal(array.numpy(), x)
    array *= array[::-1]
    np.testing.assert_array_equal(array.numpy(), x * x[::-1])


def test_many_axes_are_written_through():
    x = np.random.default_rng(0).random((2, 3, 2, 3, 2, 3))
    array = ab.array(x)
    part = array[::-1, :, ::-1, :, ::-1]
    part += ab.array(x)
    np.testing.assert_allclose(array.numpy(), x + x[::-1, :, ::-1, :, ::-1])


@pytest.mark.parametrize(
    ("array", "other"), [("int32", 1.5), ("float32", 1j), ("bool", 1), ("uint8", np.int8(1))], ids=str
)
def test_results_of_another_kind_are_refused(array, other):
    with pytest.raises(TypeError, match="in place"):
        operator.iadd(ab.ones(3, array), other)


def test_results_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\) does not fit"):
        operator.iadd(ab.ones(3), ab.ones((2, 3)))


def test_read_only_memory_is_refused(device):
    if device.kind != "cpu":
        pytest.skip("read-only memory is imported from the host")
    x = np.ones(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        operator.iadd(ab.asarray(x), 1)
