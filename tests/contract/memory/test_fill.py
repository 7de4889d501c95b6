import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 3, 2, 2)], ids=str)
def test_fill_sets_every_element(device, shape, dtype):
    array = ab.zeros(shape, dtype, device=device)
    ab.fill(array, 3)
    np.testing.assert_array_equal(array.numpy(), np.full(shape, 3, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *[
            ("bool", True),
            ("int8", -128),
            ("int64", 2**63 - 1),
            ("int64", -(2**63)),
            ("uint8", 255),
            ("uint64", 2**64 - 1),
        ],
        *[
            ("float16", 1.5),
            ("float32", np.float32(0.1)),
            ("float64", 0.1),
            ("float64", float("inf")),
            ("float32", 1e-45),
        ],
        *[
            ("complex64", 1.5 - 2j),
            ("complex128", complex("nan+1j")),
            ("complex128", 2.5),
            ("float64", 7),
            ("float32", True),
        ],
    ],
    ids=str,
)
def test_fill_sets_exactly_the_value(device, dtype, value):
    array = ab.zeros(3, dtype, device=device)
    ab.fill(array, value)
    np.testing.assert_array_equal(array.numpy(), np.full(3, value, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fill_keeps_the_sign_of_zero(device, dtype):
    array = ab.ones(3, dtype, device=device)
    ab.fill(array, -0.0)
    assert np.signbit(array.numpy()).all()


@pytest.mark.parametrize("value", [np.int32(4), np.float64(4), np.uint8(4), np.complex64(4)], ids=repr)
def test_fill_takes_numpy_scalars(device, value):
    array = ab.zeros(3, np.result_type(value, "float32"), device=device)
    ab.fill(array, value)
    np.testing.assert_array_equal(array.numpy(), np.full(3, 4))


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 128), ("uint8", 256), ("uint8", -1), ("int64", 2**63), ("int32", 2**40)], ids=str
)
def test_an_integer_that_does_not_fit_the_dtype_is_refused(device, dtype, value):
    array = ab.zeros(3, dtype, device=device)
    with pytest.raises((OverflowError, ValueError)):
        ab.fill(array, value)
    assert not array.numpy().any()


@pytest.mark.parametrize(("dtype", "value"), [("float32", 1j), ("int32", 1j), ("int32", float("nan"))], ids=str)
def test_a_number_that_the_dtype_cannot_hold_is_refused(device, dtype, value):
    array = ab.zeros(3, dtype, device=device)
    with pytest.raises((OverflowError, TypeError, ValueError)):
        ab.fill(array, value)
    assert not array.numpy().any()


@pytest.mark.parametrize("value", ["text", None, [1, 2, 3], object()], ids=["text", "None", "list", "object"])
def test_a_value_that_is_no_number_is_refused(device, value):
    array = ab.zeros(3, device=device)
    with pytest.raises((TypeError, ValueError)):
        ab.fill(array, value)
    assert not array.numpy().any()


@pytest.mark.parametrize("index", [np.s_[1:3], np.s_[::2, ::-3], np.s_[..., 0], np.s_[2, 5], np.s_[3:1]], ids=str)
def test_fill_of_a_view_touches_only_its_elements(device, index):
    expected = values((5, 7))
    array = ab.array(expected, device=device)
    ab.fill(array[index], -1)
    expected[index] = -1
    np.testing.assert_array_equal(array.numpy(), expected)


def test_fill_covers_more_than_one_worker_s_share(device):
    array = ab.zeros((1 << 11, 1 << 11), "int32", device=device)
    ab.fill(array, 3)
    ab.fill(array[:, ::2], 4)
    assert (array.numpy() == [3 + (column % 2 == 0) for column in range(1 << 11)]).all()


def test_fills_of_one_stream_run_in_order(stream):
    array = ab.zeros(100, stream=stream)
    for value in range(100):
        ab.fill(array, value, stream=stream)
    np.testing.assert_array_equal(array.numpy(), np.full(100, 99))


def test_fill_runs_on_the_current_stream_of_the_array_s_device_where_none_is_given(device, in_thread):
    array = ab.array(np.zeros(4, "float32"), device=device)
    with ab.Stream(device) as stream, ab.testing.Gate(stream), ab.Device("cpu"):
        ab.fill(array, 3)
        reading = in_thread(array.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


def test_fill_on_a_stream_of_another_device_is_refused(device, other_device):
    array = ab.zeros(4, device=device)
    with pytest.raises((ab.DeviceError, ValueError)):
        ab.fill(array, 3, stream=ab.Stream(other_device))
    assert not array.numpy().any()


def test_fill_on_a_closed_stream_is_an_error(device):
    array, stream = ab.zeros(4, device=device), ab.Stream(device)
    stream.close()
    with pytest.raises(ab.ClosedError):
        ab.fill(array, 3, stream=stream)


@pytest.mark.parametrize("array", [None, 1, np.zeros(3)], ids=["None", "int", "ndarray"])
def test_only_arrays_are_filled(array):
    with pytest.raises(TypeError):
        ab.fill(array, 3)


def test_fill_of_read_only_memory_is_refused():
    data = values(4)
    data.flags.writeable = False
    array = ab.asarray(data)
    for target in array, array[1:]:
        with pytest.raises(ValueError, match="read-only"):
            ab.fill(target, 3)
    np.testing.assert_array_equal(data, values(4))


@pytest.mark.parametrize("closed", ["array", "stream"])
def test_a_value_that_closes_what_is_filled_is_an_error(device, closed):
    given = {"array": ab.zeros(4, device=device), "stream": ab.Stream(device)}

    class Closer:
        def __array__(self, dtype=None, copy=None):
            given[closed].close()
            return np.asarray(1.0, dtype)

    with pytest.raises(ab.ClosedError):
        ab.fill(given["array"], Closer(), stream=given["stream"])
