"""Memory of others, taken without a copy."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, comes, values


def read_only(data):
    data.flags.writeable = False
    return data


# In, from NumPy


take = pytest.mark.parametrize("take", [ab.asarray, ab.from_dlpack])


@take
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)], ids=str)
def test_memory_of_numpy_is_taken_without_a_copy(take, shape, dtype):
    data = values(shape, dtype)
    array = take(data)
    assert (array.shape, array.dtype, array.strides) == (data.shape, data.dtype, data.strides)
    if data.size:
        assert array.ptr == data.ctypes.data
    np.testing.assert_array_equal(array.numpy(), data)


@take
@pytest.mark.parametrize("index", [np.s_[1:], np.s_[::-1, ::2], np.s_[..., 0], np.s_[1, 2, ...], np.s_[3:]], ids=str)
def test_strided_memory_of_numpy_is_taken_as_it_is(take, index):
    for data in values((3, 4)), values((4, 3)).T:
        view = data[index]
        array = take(view)
        np.testing.assert_array_equal(array.numpy(), view)
        ab.fill(array, 0)
        np.testing.assert_array_equal(array.numpy(), np.zeros(view.shape))
        assert not view.any()
        assert np.count_nonzero(data) == data.size - view.size


@take
def test_writes_to_memory_of_numpy_are_seen_on_both_sides(take):
    data = values(4)
    array = take(data)
    data[0] = -1
    assert array.numpy()[0] == -1
    ab.fill(array[1:], -2)
    ab.synchronize("cpu")
    np.testing.assert_array_equal(data, [-1, -2, -2, -2])


@take
def test_host_memory_is_that_of_the_first_cpu(device, take):
    with device:
        array = take(values(4))
    assert array.device is ab.Device("cpu:0")


@take
def test_memory_of_numpy_goes_to_every_device(device, take):
    array = ab.array(np.zeros(4, "float32"), device=device)
    ab.copy(array, take(values(4)))
    np.testing.assert_array_equal(array.numpy(), values(4))


def test_read_only_memory_of_numpy_may_be_read():
    np.testing.assert_array_equal(ab.asarray(read_only(values(4))).numpy(), values(4))


def test_memory_that_numpy_broadcasts_is_never_written():
    data = np.broadcast_to(values(3), (4, 3))
    array = ab.asarray(data)
    np.testing.assert_array_equal(array.numpy(), data)
    with pytest.raises(ValueError, match="read-only"):
        ab.fill(array, 0)


@take
def test_memory_of_numpy_is_kept_until_the_array_is_gone(take):
    data, gone = values(4), threading.Event()
    weakref.finalize(data, gone.set)
    array = take(data)
    del data
    gc.collect()
    assert not gone.is_set()
    np.testing.assert_array_equal(array.numpy(), values(4))
    del array
    gc.collect()
    assert comes(gone)


@take
@pytest.mark.parametrize("end", ["close", "drop"])
def test_memory_of_numpy_is_kept_until_the_last_work_with_it_is_done(take, end):
    data, gone = values(4), threading.Event()
    weakref.finalize(data, gone.set)
    result, stream = ab.array(np.zeros(4, "float32"), device="cpu"), ab.Stream("cpu")
    with ab.testing.Gate(stream):
        array = take(data)
        ab.copy(result, array, stream=stream)
        if end == "close":
            array.close()
        del array, data
        gc.collect()
        assert not gone.is_set()
    np.testing.assert_array_equal(result.numpy(), values(4))
    assert comes(gone)


@take
def test_memory_of_numpy_is_kept_by_views(take):
    data, gone = values(10), threading.Event()
    weakref.finalize(data, gone.set)
    view = take(data)[2:][::2]
    del data
    gc.collect()
    assert not gone.is_set()
    np.testing.assert_array_equal(view.numpy(), values(10)[2:][::2])


@pytest.mark.parametrize(
    "thing",
    [1, 2.5, True, None, "text", [1, 2], (1, 2), {}, range(3), Path(), np.float32(1), np.bool_(True)],
    ids=repr,
)
def test_asarray_takes_no_lists_and_no_scalars(thing):
    with pytest.raises(TypeError):
        ab.asarray(thing)


@pytest.mark.parametrize("thing", [1, None, [1, 2], object()], ids=["int", "None", "list", "object"])
def test_from_dlpack_takes_only_what_speaks_dlpack(thing):
    with pytest.raises((TypeError, AttributeError)):
        ab.from_dlpack(thing)


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", [("a", "i4"), ("b", "f4")]], ids=str)
@take
def test_memory_of_other_than_numbers_is_refused(take, dtype):
    with pytest.raises((TypeError, ValueError, BufferError)):
        take(np.zeros(3, dtype))


@pytest.mark.parametrize(
    "data",
    [
        np.arange(4, dtype=np.dtype("int32").newbyteorder()),
        np.rec.fromarrays([[1, 2, 3], [4, 5, 6]], dtype=[("a", "i1"), ("b", "i4")]).b,
        np.frombuffer(b"\0" + np.arange(4, dtype="int32").tobytes(), "int32", offset=1),
    ],
    ids=["foreign byte order", "stride that no element fits", "unaligned"],
)
@take
def test_unusual_memory_is_read_rightly_or_refused(take, data):
    try:
        array = take(data)
    except (TypeError, ValueError, BufferError):
        return
    np.testing.assert_array_equal(array.numpy(), data)


class Interface:
    """Memory of somebody who speaks `__array_interface__` and nothing else."""

    def __init__(self, owner, **changes):
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__ | changes


@pytest.mark.parametrize("index", [np.s_[:], np.s_[::-1, ::2], np.s_[:0]], ids=str)
def test_asarray_speaks_the_array_interface(index):
    data = values((3, 4))[index]
    array = ab.asarray(Interface(data))
    assert (array.shape, array.dtype, array.device) == (data.shape, data.dtype, ab.Device("cpu:0"))
    np.testing.assert_array_equal(array.numpy(), data)


def test_asarray_keeps_the_owner_of_an_array_interface():
    owner, gone = Interface(values(4)), threading.Event()
    weakref.finalize(owner, gone.set)
    array = ab.asarray(owner)
    del owner
    gc.collect()
    assert not gone.is_set()
    np.testing.assert_array_equal(array.numpy(), values(4))
    del array
    gc.collect()
    assert comes(gone)


def test_memory_that_an_array_interface_calls_read_only_is_not_written():
    data = values(4)
    array = ab.asarray(Interface(data, data=(data.ctypes.data, True)))
    with pytest.raises(ValueError, match="read-only"):
        ab.fill(array, 0)
    np.testing.assert_array_equal(data, values(4))


class CudaInterface:
    """Memory of somebody who speaks `__cuda_array_interface__` and nothing else."""

    def __init__(self, owner, **changes):
        self.owner = owner
        self.__cuda_array_interface__ = owner.__cuda_array_interface__ | changes


def test_asarray_speaks_the_cuda_array_interface(device):
    if device.kind == "cpu":
        pytest.skip("it is for memory of a GPU")
    owner = ab.array(values((3, 4)), device=device)
    array = ab.asarray(CudaInterface(owner[::-1, ::2]))
    assert (array.device, array.ptr) == (device, owner[::-1, ::2].ptr)
    np.testing.assert_array_equal(array.numpy(), values((3, 4))[::-1, ::2])
    with pytest.raises(ValueError, match="read-only"):
        ab.fill(ab.asarray(CudaInterface(owner, data=(owner.ptr, True))), 0)


@pytest.mark.parametrize("written", [False, True])
def test_who_takes_an_array_by_the_interface_comes_after_the_stream_that_it_names(device, written):
    if device.kind == "cpu":
        pytest.skip("the interface names streams of a GPU")
    a, b = ab.Stream(device), ab.Stream(device)
    owner = ab.zeros(4, device=device)
    ab.synchronize(device)
    with ab.hazards("check"):
        with a:
            if written:
                ab.fill(owner, 3)
            theirs = CudaInterface(owner)
        with b:
            array = ab.asarray(theirs)
            ab.fill(array, 1)  # reports no race
    np.testing.assert_array_equal(owner.numpy(), 1)


@take
def test_arrays_of_our_own_are_taken_without_a_copy(device, take):
    array = ab.array(values(4), device=device)
    again = take(array)
    assert again.ptr == array.ptr
    del array
    np.testing.assert_array_equal(again.numpy(), values(4))


def test_a_masked_array_is_refused():
    with pytest.raises(TypeError, match="masked"):
        ab.asarray(np.ma.masked_array([1.0, 2.0], [False, True]))
