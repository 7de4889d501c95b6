"""Which numbers an array's elements can be set to, as values of `full` and `fill`: Python's, or the same of NumPy's."""

import numpy as np
import pytest

import anabranch as ab

LARGE = np.longdouble("1e30")


def put(device, dtype, value):
    """Set elements by `full` and by `fill`, and check that both come to the same."""
    array = ab.zeros(3, dtype, device=device)
    ab.fill(array, value)
    made = ab.full(3, value, dtype, device=device).numpy()
    np.testing.assert_array_equal(array.numpy(), made)
    return made


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        *[("int8", np.int64(-128), -128), ("uint64", np.uint64(2**64 - 1), 2**64 - 1), ("int64", np.uint8(200), 200)],
        *[("int32", np.float64(2.5), 2), ("int8", np.float32(-2.5), -2), ("uint8", np.float16(255), 255)],
        *[("int64", np.longdouble(2**63 - 1), 2**63 - 1), ("int8", np.True_, 1), ("int8", np.array(5), 5)],
        *[("bool", np.float64(2.5), True), ("bool", np.int64(256), True), ("bool", np.complex64(1j), True)],
        *[("float32", np.int64(7), 7), ("float16", np.float64(0.5), 0.5), ("float64", np.float32(0.5), 0.5)],
        *[("float64", np.longdouble(0.5), 0.5), ("float32", np.float32("nan"), np.nan)],
        *[("complex64", np.float64(2.5), 2.5), ("complex64", np.complex128(1 + 2j), 1 + 2j)],
        *[("complex128", np.clongdouble(1 + 2j), 1 + 2j), ("complex128", np.int8(3), 3)],
    ],
    ids=str,
)
def test_numpy_scalars_are_converted_as_python_s_numbers_are(device, dtype, value, expected):
    np.testing.assert_array_equal(put(device, dtype, value), np.full(3, expected, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *[("int8", 300), ("int8", np.int64(300)), ("uint8", np.int8(-1)), ("int64", np.uint64(2**63))],
        *[("int8", 300.5), ("int8", np.float64(300.5)), ("int8", np.float32(300)), ("uint64", np.float64(-1))],
        *[("int8", np.array(300)), ("int64", 1e30), ("int64", LARGE), ("int32", np.float32("inf"))],
        *[("int32", float("nan")), ("int32", np.float64("nan")), ("int32", np.longdouble("nan"))],
        *[("float32", 1j), ("float64", 1 + 0j), ("float32", np.complex64(1j)), ("float64", np.complex128(1))],
        *[("int32", 1j), ("int32", np.complex128(1j)), ("float32", np.clongdouble(1j)), ("float64", 10**400)],
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_number_that_does_not_fit_is_a_value_error(device, dtype, value):
    array = ab.zeros(3, dtype, device=device)
    with pytest.raises(ValueError, match=f"does not fit dtype {dtype}"):
        ab.fill(array, value)
    with pytest.raises(ValueError, match=f"does not fit dtype {dtype}"):
        ab.full(3, value, dtype, device=device)
    assert not array.numpy().any()


@pytest.mark.parametrize(
    "value", ["text", None, object(), np.datetime64("2020")], ids=["text", "None", "object", "datetime64"]
)
def test_what_is_no_number_is_a_type_error(device, value):
    with pytest.raises(TypeError, match="a number"):
        ab.full(3, value, "float32", device=device)


@pytest.mark.parametrize("value", [2**70, None], ids=str)
def test_a_value_that_numpy_has_no_dtype_for_is_refused_in_these_words(device, value):
    with pytest.raises(TypeError, match=r"dtype object.* integers of over 64 bits"):
        ab.full(3, value, device=device)
