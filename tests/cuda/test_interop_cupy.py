"""Arrays of CuPy and Numba, and the CUDA array interface: no copy, in order, alive for as long as needed.

Theirs are written and copied with plain memory operations, so that no kernel of theirs has to be compiled.
"""

import gc

import numpy as np
import pytest

import anabranch as ab

from .gpu import SIZE, CudaInterface, eventually, values

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
TAKE = {
    "asarray": ab.asarray,
    "from_dlpack": ab.from_dlpack,
    "interface": lambda data: ab.asarray(CudaInterface(data)),
}
each_taker = pytest.mark.parametrize("take", TAKE.values(), ids=TAKE)
GIVE = {
    "from_dlpack": lambda cupy, array: cupy.from_dlpack(array),
    "interface": lambda cupy, array: cupy.asarray(CudaInterface(array)),
}
each_giver = pytest.mark.parametrize("give", GIVE.values(), ids=GIVE)


@pytest.fixture
def theirs(cupy):
    """A stream of CuPy's, current there."""
    with cupy.cuda.Stream(non_blocking=True) as stream:
        yield stream


def write(data, byte):
    """Set every byte, on CuPy's current stream."""
    data.data.memset_async(byte, data.nbytes)


# No copy


@each_dtype
@each_taker
def test_an_array_of_cupy_is_taken_without_a_copy(cupy, cuda, take, dtype):
    data = cupy.asarray(values((3, 4), dtype))
    array = take(data)
    assert (array.ptr, array.device) == (data.data.ptr, cuda)
    assert (array.shape, array.strides, array.dtype) == (data.shape, data.strides, data.dtype)
    np.testing.assert_array_equal(array.numpy(), values((3, 4), dtype))


@each_dtype
@each_giver
def test_an_array_is_given_to_cupy_without_a_copy(cupy, cuda, give, dtype):
    array = ab.array(values((3, 4), dtype), device=cuda)
    data = give(cupy, array)
    assert (data.data.ptr, data.shape, data.strides, data.dtype) == (
        array.ptr, array.shape, array.strides, array.dtype,
    )  # fmt: skip
    np.testing.assert_array_equal(data.get(), values((3, 4), dtype))


VIEWS = [np.s_[1:, ::2], np.s_[::-1, ..., ::-2], np.s_[..., 3], np.s_[1, 2, 3], np.s_[:0]]


@each_taker
@pytest.mark.parametrize("index", VIEWS, ids=str)
def test_views_of_cupy_are_taken_as_they_are(cupy, cuda, take, index):
    data = cupy.asarray(values((4, 6, 5), "float32"))[index]
    array = take(data)
    assert (array.shape, array.strides) == (data.shape, data.strides) or array.size == 0
    np.testing.assert_array_equal(array.numpy(), values((4, 6, 5), "float32")[index])


@each_giver
@pytest.mark.parametrize("index", VIEWS, ids=str)
def test_views_are_given_to_cupy_as_they_are(cupy, cuda, give, index):
    view = ab.array(values((4, 6, 5), "float32"), device=cuda)[index]
    data = give(cupy, view)
    assert (data.shape, data.strides) == (view.shape, view.strides) or view.size == 0
    again = ab.asarray(data)  # read back by us: CuPy would compile a kernel to gather it
    np.testing.assert_array_equal(again.numpy(), values((4, 6, 5), "float32")[index])


def test_managed_memory_is_the_gpu_s(cupy, cuda):
    data = cupy.ndarray((100,), "uint8", memptr=cupy.cuda.malloc_managed(100))
    write(data, 3)
    for take in TAKE.values():
        array = take(data)
        assert (array.device, array.ptr) == (cuda, data.data.ptr)
        np.testing.assert_array_equal(array.numpy(), 3)


# The CUDA array interface


class Memory:
    """Somebody's memory, described by hand."""

    def __init__(self, pointer, shape, typestr, owner, stream=None):
        self.owner = owner
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "typestr": typestr, "data": (pointer, False), "strides": None,
            "stream": stream,
        }  # fmt: skip


def test_pinned_memory_shown_by_the_interface_is_the_host_s(cupy, cuda):
    pinned = cupy.cuda.alloc_pinned_memory(400)
    np.frombuffer(pinned, "float32", 100)[:] = values(100, "float32")
    array = ab.asarray(Memory(pinned.ptr, (100,), "<f4", pinned))
    assert (array.device, array.ptr) == (ab.Device("cpu:0"), pinned.ptr)
    np.testing.assert_array_equal(array.numpy(), values(100, "float32"))


def test_pinned_memory_shown_by_the_interface_is_read_after_its_stream(cuda, delay):
    ours = ab.Stream(cuda)
    pinned, source = ab.zeros(SIZE, device="cpu", pinned=True), ab.ones(SIZE, stream=ours)
    ab.synchronize("cpu")
    delay(ours)
    ab.copy(pinned, source, stream=ours)
    array = ab.asarray(Memory(pinned.ptr, (SIZE,), "<f4", pinned, ours.handle))
    assert array.device is ab.Device("cpu:0")
    np.testing.assert_array_equal(array.numpy(), 1)


def test_the_device_is_the_pointer_s_whatever_is_current(cuda):
    array = ab.full(100, 3, "float32", device=cuda)
    with ab.Device("cpu"):
        taken = ab.asarray(CudaInterface(array))
    assert taken.device is cuda
    np.testing.assert_array_equal(taken.numpy(), 3)


def test_the_interface_names_the_current_stream_which_waits(cuda, delay):
    writer, reader = ab.Stream(cuda), ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=writer)
    delay(writer)
    ab.fill(array, 3, stream=writer)
    with reader:
        interface = array.__cuda_array_interface__
    assert interface["stream"] == reader.handle
    assert not reader.query()
    reader.synchronize()
    assert writer.query()


def test_the_stream_of_an_interface_is_waited_for(cuda, delay):
    writer, reader = ab.Stream(cuda), ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=writer)
    writer.synchronize()
    theirs = Memory(array.ptr, (SIZE,), "<f4", array, writer.handle)
    delay(writer)
    ab.fill(array, 3, stream=writer)
    with reader:
        copy = ab.zeros(SIZE)
        ab.copy(copy, ab.asarray(theirs))
    np.testing.assert_array_equal(copy.numpy(), 3)


def test_an_interface_without_a_stream_asks_for_no_order(cuda, delay):
    writer, reader = ab.Stream(cuda), ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=writer)
    delay(writer)
    with reader:
        taken = ab.asarray(Memory(array.ptr, (SIZE,), "<f4", array))
    assert reader.query()
    assert not writer.query()
    assert taken.ptr == array.ptr


def test_an_interface_with_a_stream_that_is_none_is_refused(cuda):
    array = ab.zeros(4, device=cuda)
    with pytest.raises(ValueError, match="handle"):
        ab.asarray(Memory(array.ptr, (4,), "<f4", array, 0))


def test_an_interface_with_a_mask_is_refused(cuda):
    array = ab.zeros(4, device=cuda)
    with pytest.raises(TypeError, match="mask"):
        ab.asarray(CudaInterface(array, mask=array))


class OfAnotherKind:
    def __dlpack_device__(self):
        return 10, 0

    def __dlpack__(self, **_):
        raise AssertionError("it must not be asked")


def test_memory_of_a_device_of_another_kind_is_refused():
    with pytest.raises(BufferError, match="10"):
        ab.from_dlpack(OfAnotherKind())


# Order


@each_taker
def test_a_taken_array_is_read_after_it_was_written(cupy, theirs, cuda, delay, take):
    data = cupy.zeros(SIZE, "uint8")
    delay(ab.Stream.from_external(theirs))
    write(data, 3)
    with ab.Stream(cuda):
        copy = ab.empty(SIZE, "uint8")
        ab.copy(copy, take(data))
    np.testing.assert_array_equal(copy.numpy(), 3)


@each_giver
def test_an_array_given_out_is_read_after_it_was_written(cupy, theirs, cuda, delay, give):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, "uint8", stream=ours)
    delay(ours)
    ab.fill(array, 3, stream=ours)
    np.testing.assert_array_equal(give(cupy, array).get(), 3)


@each_giver
def test_an_array_given_out_is_written_after_it_was_read(cupy, theirs, cuda, delay, give):
    ours = ab.Stream(cuda)
    array, copy = ab.ones(SIZE, "uint8", stream=ours), ab.zeros(SIZE, "uint8", stream=ours)
    delay(ours)
    ab.copy(copy, array, stream=ours)
    write(give(cupy, array), 9)
    np.testing.assert_array_equal(copy.numpy(), 1)
    theirs.synchronize()
    np.testing.assert_array_equal(array.numpy(), 9)


# Lifetime


@each_taker
def test_a_taken_array_is_kept_until_our_work_with_it_is_done(cupy, theirs, cuda, delay, take):
    data = cupy.empty(SIZE, "uint8")
    write(data, 3)
    address, ours = data.data.ptr, ab.Stream(cuda)
    with ours:
        copy = ab.zeros(SIZE, "uint8")
        array = take(data)
        delay(ours)
        ab.copy(copy, array)
    del data, array
    gc.collect()
    # CuPy's pool would give a block that was free to this one, which is written at once.
    again = cupy.empty(SIZE, "uint8")
    write(again, 7)
    assert again.data.ptr != address
    np.testing.assert_array_equal(copy.numpy(), 3)


def test_a_taken_array_goes_back_to_its_pool(cupy, cuda):
    gc.collect()
    before = cupy.get_default_memory_pool().used_bytes()
    array = ab.asarray(cupy.zeros(SIZE, "uint8"))
    gc.collect()
    assert cupy.get_default_memory_pool().used_bytes() > before
    array.close()
    assert eventually(lambda: cupy.get_default_memory_pool().used_bytes() <= before)


def test_an_array_given_out_is_kept_until_their_work_with_it_is_done(cupy, theirs, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.full(SIZE, 3, "uint8", stream=ours)
    data, copy = cupy.from_dlpack(array), cupy.empty(SIZE, "uint8")
    delay(ab.Stream.from_external(theirs))
    copy.data.copy_from_device_async(data.data, data.nbytes)
    del array, data
    gc.collect()
    others = [ab.full(SIZE, 7, "uint8", stream=ours) for _ in range(8)]
    ours.synchronize()
    np.testing.assert_array_equal(copy.get(), 3)
    assert all((other.numpy() == 7).all() for other in others)


# Numba


def test_arrays_of_numba_are_taken_without_a_copy(numba, cuda):
    theirs = numba.to_device(values((3, 4), "float32"))
    array = ab.asarray(theirs)
    assert (array.ptr, array.device) == (theirs.__cuda_array_interface__["data"][0], cuda)
    np.testing.assert_array_equal(array.numpy(), values((3, 4), "float32"))
    ab.fill(array, 5)
    ab.synchronize(cuda)
    np.testing.assert_array_equal(theirs.copy_to_host(), 5)


def test_numba_reads_an_array_after_it_was_written(numba, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=ours)
    delay(ours)
    ab.fill(array, 3, stream=ours)
    theirs = numba.as_cuda_array(array)
    assert theirs.__cuda_array_interface__["data"][0] == array.ptr
    np.testing.assert_array_equal(theirs.copy_to_host(), 3)
