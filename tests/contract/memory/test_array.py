import math
import pickle

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values

SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (2, 3, 4), (2, 1, 3, 2)]

CREATIONS = {
    "empty": lambda **where: ab.empty(6, "int32", **where),
    "zeros": lambda **where: ab.zeros(6, "int32", **where),
    "ones": lambda **where: ab.ones(6, "int32", **where),
    "full": lambda **where: ab.full(6, 5, "int32", **where),
    "array": lambda **where: ab.array(np.arange(6), "int32", **where),
}

FILLED = {"zeros": 0, "ones": 1, "full": 5}

creations = pytest.mark.parametrize("create", CREATIONS.values(), ids=CREATIONS)
filled = pytest.mark.parametrize("name", FILLED)


# Shapes and dtypes


@pytest.mark.uninitialized
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_empty_has_the_shape_and_dtype_asked_for(device, shape, dtype):
    array = ab.empty(shape, dtype, device=device)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert (array.numpy().shape, array.numpy().dtype) == (shape, np.dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_zeros_ones_and_full_hold_their_value(device, shape, dtype):
    np.testing.assert_array_equal(ab.zeros(shape, dtype, device=device).numpy(), np.zeros(shape, dtype))
    np.testing.assert_array_equal(ab.ones(shape, dtype, device=device).numpy(), np.ones(shape, dtype))
    np.testing.assert_array_equal(ab.full(shape, 3, dtype, device=device).numpy(), np.full(shape, 3, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_array_copies_numpy_data(device, shape, dtype):
    data = values(shape, dtype)
    array = ab.array(data, device=device)
    assert (array.shape, array.dtype) == (data.shape, data.dtype)
    np.testing.assert_array_equal(array.numpy(), data)


def test_a_shape_may_be_an_array_of_numpy(device):
    assert ab.zeros(np.array([2, 3]), device=device).shape == (2, 3)


def test_an_int_is_a_shape_of_one_dimension(device):
    assert ab.zeros(3, device=device).shape == (3,)


@pytest.mark.parametrize("create", [ab.empty, ab.zeros, ab.ones])
def test_the_dtype_is_float32_where_none_is_given(device, create):
    assert create(3, device=device).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64"), "f8", float], ids=repr)
def test_a_dtype_may_be_anything_that_numpy_takes_for_one(device, dtype):
    assert ab.zeros(3, dtype, device=device).dtype == np.float64


class TorchDtype:
    """What a dtype of PyTorch is to who has not imported it."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


TorchDtype.__module__, TorchDtype.__name__ = "torch", "dtype"


@pytest.mark.parametrize("name", ["float16", "bool", "complex64", "uint8"])
def test_a_dtype_may_be_one_of_pytorch(device, name):
    array = ab.zeros(3, TorchDtype(name), device=device)
    assert array.dtype == name
    assert array.view(TorchDtype("uint8")).nbytes == array.nbytes


def test_a_dtype_of_pytorch_that_numpy_lacks_is_refused(device):
    with pytest.raises(TypeError, match=r"arrays cannot hold dtype torch\.bfloat16; they hold bool"):
        ab.zeros(3, TorchDtype("bfloat16"), device=device)


@pytest.mark.parametrize("value", [True, 2, 2.5, 1j, np.float32(2.5), np.int8(-3), np.complex64(1j)], ids=repr)
def test_full_takes_the_dtype_of_its_value_where_none_is_given(device, value):
    array = ab.full(3, value, device=device)
    assert array.dtype == np.full(3, value).dtype
    np.testing.assert_array_equal(array.numpy(), np.full(3, value))


@pytest.mark.parametrize("data", [3, 2.5, True, [1, 2, 3], [[1.5, 2], [3, 4]], (1j, 2), [True, False], []], ids=repr)
def test_array_takes_what_numpy_makes_an_array_of(device, data):
    array = ab.array(data, device=device)
    assert (array.shape, array.dtype) == (np.array(data).shape, np.array(data).dtype)
    np.testing.assert_array_equal(array.numpy(), np.array(data))


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64"])
def test_array_converts_to_the_dtype_asked_for(device, dtype):
    array = ab.array([1, 2, 3], dtype, device=device)
    assert array.dtype == dtype
    np.testing.assert_array_equal(array.numpy(), [1, 2, 3])


@pytest.mark.parametrize("index", [np.s_[::2], np.s_[::-1, 1:], np.s_[..., 0], np.s_[1]], ids=str)
def test_array_reads_strided_numpy_data(device, index):
    data = values((5, 6))
    np.testing.assert_array_equal(ab.array(data[index], device=device).numpy(), data[index])
    np.testing.assert_array_equal(ab.array(data.T[index], device=device).numpy(), data.T[index])


def test_array_takes_a_copy(device):
    data = values(5)
    array = ab.array(data, device=device)
    data[:] = 0
    np.testing.assert_array_equal(array.numpy(), values(5))


def test_array_reads_a_foreign_byte_order_rightly_or_refuses_it(device):
    data = np.arange(5, dtype=np.dtype("int32").newbyteorder())
    try:
        array = ab.array(data, device=device)
    except (TypeError, ValueError):
        return
    np.testing.assert_array_equal(array.numpy(), data)


@pytest.mark.parametrize("dtype", [object, "U5", "S3", "M8[ns]", "m8[s]", [("a", "i4")], "no such dtype"], ids=str)
def test_a_dtype_other_than_boolean_integer_float_or_complex_is_refused(device, dtype):
    with pytest.raises((TypeError, ValueError)):
        ab.empty(3, dtype, device=device)


@pytest.mark.parametrize("data", ["text", [None], [{}], np.array(["2020-01-01"], "M8[D]")], ids=repr)
def test_array_refuses_data_that_are_no_numbers(device, data):
    with pytest.raises((TypeError, ValueError)):
        ab.array(data, device=device)


@pytest.mark.parametrize("create", [ab.empty, ab.zeros, ab.ones])
@pytest.mark.parametrize("shape", [-1, (-1,), (2, -1), (0, -1)], ids=str)
def test_a_negative_size_is_refused_by_name(device, create, shape):
    with pytest.raises(ValueError, match="-1"):
        create(shape, device=device)


@pytest.mark.parametrize("shape", [2**62, (2**40, 2**40), 2**70, (3, 2**64)], ids=str)
def test_a_size_that_overflows_is_refused(device, shape):
    with pytest.raises(ValueError, match=str(shape[-1] if isinstance(shape, tuple) else shape)):
        ab.empty(shape, "float64", device=device)


@pytest.mark.parametrize("shape", [2.5, "3", None, (2, 2.5), ("a",)], ids=repr)
def test_a_shape_that_is_no_integers_is_a_type_error(device, shape):
    with pytest.raises(TypeError):
        ab.empty(shape, device=device)


# Where and when


@creations
def test_an_array_is_made_on_the_device_asked_for(device, create):
    assert create(device=device).device is device
    assert create(device=device.alias).device is device


@creations
def test_an_array_is_made_on_the_current_device_where_none_is_asked_for(device, create):
    with device:
        assert create().device is device


@creations
def test_an_array_is_made_on_the_device_of_its_stream(device, create):
    assert create(stream=ab.Stream(device)).device is device


@creations
def test_a_stream_of_another_device_than_asked_for_is_refused(device, other_device, create):
    with pytest.raises((ValueError, ab.DeviceError)):
        create(device=device, stream=ab.Stream(other_device))


@creations
def test_an_unknown_device_is_refused(create):
    with pytest.raises(ab.DeviceError, match="cpu:999"):
        create(device="cpu:999")


@creations
def test_a_closed_stream_is_refused(create, stream):
    stream.close()
    with pytest.raises(ab.ClosedError):
        create(stream=stream)


@filled
def test_creation_returns_before_its_stream_has_run_it(device, name, stream):
    with ab.testing.Gate(stream):
        array = CREATIONS[name](device=device, stream=stream)
        assert not stream.record_event().query()
    np.testing.assert_array_equal(array.numpy(), np.full(6, FILLED[name]))


@filled
def test_creation_runs_on_the_given_stream(name, in_thread, stream):
    with ab.testing.Gate(stream):
        reading = in_thread(CREATIONS[name](stream=stream).numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(6, FILLED[name]))


@filled
def test_creation_runs_on_the_current_stream_where_none_is_given(device, name, in_thread):
    with ab.Stream(device) as stream, ab.testing.Gate(stream):
        reading = in_thread(CREATIONS[name](device=device).numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(6, FILLED[name]))


def test_allocation_does_not_wait_for_its_stream(device, stream):
    with ab.testing.Gate(stream):
        array = ab.empty(1000, device=device, stream=stream)
        assert array.ptr != 0
        assert array.nbytes == 4000


def test_array_returns_when_the_numpy_data_have_been_copied(device):
    array = ab.array(values(1000), stream=ab.Stream(device))
    other = ab.Stream(device)
    result = ab.empty(1000, stream=other)
    ab.copy(result, array, stream=other)
    np.testing.assert_array_equal(result.numpy(), values(1000))


def test_array_is_asynchronous_from_pinned_memory(device):
    pinned = ab.array(values(6), device="cpu", pinned=True)
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        array = ab.array(pinned, device=device, stream=stream)
        assert not stream.query()
    assert array.device is device
    np.testing.assert_array_equal(array.numpy(), values(6))


@creations
def test_only_arrays_of_a_cpu_can_be_pinned(device, create):
    assert not create(device=device).pinned
    if device.kind == "cpu":
        assert create(device=device, pinned=True).pinned
    else:
        with pytest.raises(ValueError, match="pinned"):
            create(device=device, pinned=True)


@filled
def test_pinned_arrays_hold_their_value(name):
    np.testing.assert_array_equal(CREATIONS[name](device="cpu", pinned=True).numpy(), np.full(6, FILLED[name]))


# Attributes


@pytest.mark.parametrize("dtype", DTYPES)
def test_attributes_describe_the_array_as_numpys_do(device, dtype):
    array, data = ab.empty((2, 3, 4), dtype, device=device), np.empty((2, 3, 4), dtype)
    for name in ["shape", "dtype", "strides", "ndim", "size", "nbytes"]:
        assert getattr(array, name) == getattr(data, name)
    assert isinstance(array.dtype, np.dtype)
    assert isinstance(array.ptr, int)


@pytest.mark.parametrize("name", ["shape", "dtype", "strides", "ndim", "size", "nbytes", "device", "ptr", "pinned"])
def test_attributes_cannot_be_set(device, name):
    array = ab.zeros(3, device=device)
    with pytest.raises(AttributeError):
        setattr(array, name, getattr(array, name))


def test_arrays_do_not_share_memory(device):
    first, second = ab.zeros(100, device=device), ab.zeros(100, device=device)
    assert abs(first.ptr - second.ptr) >= first.nbytes


def test_repr_says_what_and_where(device):
    text = repr(ab.zeros((2, 3), "int16", device=device))
    assert "(2, 3)" in text
    assert "int16" in text
    assert device.alias in text


def test_repr_waits_for_nothing(stream):
    with ab.testing.Gate(stream):
        assert "float32" in repr(ab.zeros(3, stream=stream))


def test_a_closed_array_has_a_repr(device):
    array = ab.zeros(3, device=device)
    array.close()
    assert isinstance(repr(array), str)


# Closing

USES = {
    "numpy": lambda a, _: a.numpy(),
    "view": lambda a, _: a[1:],
    "ptr": lambda a, _: a.ptr,
    "fill": lambda a, _: ab.fill(a, 1),
    "copy to": ab.copy,
    "copy from": lambda a, b: ab.copy(b, a),
    "array": lambda a, b: ab.array(a, device=b.device),
    "__dlpack__": lambda a, _: a.__dlpack__(),
    "from_dlpack": lambda a, _: ab.from_dlpack(a),
    "asarray": lambda a, _: ab.asarray(a),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("index", [None, np.s_[:]], ids=["array", "view"])
def test_any_use_of_a_closed_array_is_an_error(device, use, index):
    array, other = ab.zeros(4, device=device), ab.zeros(4, device=device)
    array = array if index is None else array[index]
    array.close()
    with pytest.raises(ab.ClosedError):
        use(array, other)


@pytest.mark.parametrize("use", [lambda a: a.__array__(), lambda a: a.host().__enter__()], ids=["__array__", "host"])
def test_a_closed_array_shows_the_host_nothing(use):
    array = ab.zeros(4, device="cpu")
    array.close()
    with pytest.raises(ab.ClosedError):
        use(array)


def test_closing_again_does_nothing(device):
    array = ab.zeros(4, device=device)
    array.close()
    array.close()


def test_closing_waits_for_nothing_and_loses_nothing(device, stream):
    result = ab.array(np.zeros(1000, "float32"), device=device)
    with ab.testing.Gate(stream):
        array = ab.full(1000, 3, "float32", stream=stream)
        ab.copy(result, array, stream=stream)
        array.close()
        assert not stream.query()
    np.testing.assert_array_equal(result.numpy(), np.full(1000, 3))


# Size


def test_an_array_may_be_larger_than_one_worker_s_share(device):
    shape = (1 << 10, 1 << 12)
    array = ab.full(shape, 3, "int32", device=device)
    assert array.size == math.prod(shape)
    assert (array.numpy() == 3).all()


def test_an_array_stays_in_its_process(device):
    array = ab.zeros(3, device=device)
    with pytest.raises(TypeError, match=r"lives in this process; send a copy of its elements, array\.numpy\(\)"):
        pickle.dumps(array)


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [
        ([300], "int8", OverflowError),
        (-1, "uint8", OverflowError),
        ([2**40], "int32", OverflowError),
        ([float("nan")], "int32", ValueError),
        ([1 + 2j], "float32", TypeError),
    ],
)
def test_numbers_that_do_not_fit_the_dtype_are_refused_as_by_numpy(device, data, dtype, error):
    with pytest.raises(error):
        np.asarray(data, dtype)
    with pytest.raises(error):
        ab.array(data, dtype, device=device)
