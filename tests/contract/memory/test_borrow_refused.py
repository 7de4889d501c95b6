"""Descriptions of memory that no memory fits are refused before it is used."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import anabranch as ab

LARGEST = 2**63 - 1

# Declared once: to set the types of a function of `ctypes.pythonapi`, which all share, while another thread calls it
# crashes the free-threaded interpreter.
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Tensor(ctypes.Structure):
    """What a DLPack capsule refers to, as far as it describes the memory."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device", 2 * ctypes.c_int32), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


def described(device, shape, strides=None, ndim=None, start=0):
    """Memory of 64 float32 whose owner says this of it, by DLPack."""
    array = ab.array(np.arange(64, dtype="float32"), device=device)
    capsule = array.__dlpack__()
    tensor = Tensor.from_address(capsule_pointer(capsule, b"dltensor"))
    tensor.ndim = len(shape or ()) if ndim is None else ndim
    kept = [None if sizes is None else (ctypes.c_int64 * len(sizes))(*sizes) for sizes in (shape, strides)]
    tensor.shape, tensor.strides = (ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)) for sizes in kept)
    tensor.data += 4 * start
    return SimpleNamespace(
        __dlpack__=lambda **_: capsule, __dlpack_device__=array.__dlpack_device__, kept=kept, ptr=array.ptr
    )


def test_negative_strides_that_were_divided_without_their_sign_are_negative(device):
    backwards = ab.from_dlpack(described(device, [2, 8], [8, (2**64 - 4) // 4], start=7))
    assert backwards.strides == (32, -4)
    assert backwards.numpy().tolist() == [list(range(7, -1, -1)), list(range(15, 7, -1))]


@pytest.mark.parametrize("strides", [[2**62], [2**61], [-(2**62)], [LARGEST], [-(2**63)]], ids=str)
def test_dlpack_with_strides_beyond_what_addresses_reach_is_refused(device, strides):
    with pytest.raises(ValueError, match=r"span over 2\*\*63 - 1 bytes"):
        ab.from_dlpack(described(device, [4], strides))


def test_strides_that_only_together_reach_too_far_are_refused(device):
    with pytest.raises(ValueError, match=r"span over 2\*\*63 - 1 bytes"):
        ab.from_dlpack(described(device, [2, 2], [2**60, -(2**60)]))


@pytest.mark.parametrize("shape", [[2**62], [2**31, 2**31]], ids=str)
def test_dlpack_with_more_bytes_than_addresses_reach_is_refused(device, shape):
    with pytest.raises(ValueError, match="over 2"):
        ab.from_dlpack(described(device, shape))


def test_memory_that_goes_around_the_end_of_the_addresses_is_refused(device):
    with pytest.raises(ValueError, match="bytes off the address"):
        ab.from_dlpack(described(device, [2], [-(2**60)]))


@pytest.mark.parametrize(("size", "stride"), [(8, -(2**60)), (17, 2**60), (17, -(2**60))])
def test_memory_of_numpy_that_goes_around_the_end_of_the_addresses_is_refused(size, stride):
    data = as_strided(np.ones(4, "float32"), (size,), (stride,))
    with pytest.raises(ValueError, match=r"bytes off the address|span over"):
        ab.asarray(data)
    assert ab.asarray(data[:1]).numpy().tolist() == [1]


@pytest.mark.parametrize("ndim", [-1, 17, 2**31 - 1])
def test_dlpack_with_a_number_of_dimensions_that_no_array_has_is_refused(device, ndim):
    with pytest.raises(ValueError, match=f"0 to 16 dimensions, not {ndim}"):
        ab.from_dlpack(described(device, [1], ndim=ndim))


def test_dlpack_without_sizes_is_refused(device):
    with pytest.raises(ValueError, match="no sizes are given for 2 dimensions"):
        ab.from_dlpack(described(device, None, ndim=2))
    assert ab.from_dlpack(described(device, None)).shape == ()


@pytest.mark.parametrize("stride", [LARGEST, -(2**63), 2**62])
@pytest.mark.parametrize("size", [0, 1])
def test_a_stride_that_leads_nowhere_may_be_anything(device, size, stride):
    array = ab.from_dlpack(described(device, [size, 3], [stride, 1]))
    assert array.numpy().tolist() == [[0.0, 1.0, 2.0]] * size


@pytest.mark.parametrize("strides", [(2**62,), (-(2**62),), (2**63,), (2**70,)], ids=str)
def test_an_array_interface_with_strides_beyond_what_addresses_reach_is_refused(device, strides):
    if device.kind == "cpu":
        theirs = as_strided(np.zeros(4, "float32"), (4,), strides if strides[0] < 2**63 else (LARGEST,))
    else:
        interface = ab.zeros(4, device=device).__cuda_array_interface__ | {"strides": strides}
        theirs = SimpleNamespace(__cuda_array_interface__=interface)
    with pytest.raises(ValueError, match=r"span over 2\*\*63 - 1 bytes"):
        ab.asarray(theirs)


def test_an_array_interface_with_fewer_strides_than_dimensions_is_refused(device):
    if device.kind == "cpu":
        pytest.skip("NumPy refuses it")
    interface = ab.zeros(4, device=device).__cuda_array_interface__ | {"shape": (2, 2), "strides": (4,)}
    with pytest.raises(ValueError, match="1 strides are given for 2 dimensions"):
        ab.asarray(SimpleNamespace(__cuda_array_interface__=interface))
