import contextlib
import gc
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLPack's numbers for kinds of devices


@pytest.fixture
def cpu(device):
    if device.kind != "cpu":
        pytest.skip("NumPy reads host memory only")
    return device


def read_only(data):
    data.flags.writeable = False
    return data


# Out, by DLPack


def test_dlpack_device_is_where_the_array_is(device):
    kind, index = ab.zeros(4, device=device).__dlpack_device__()
    assert kind == (CPU if device.kind == "cpu" else CUDA)
    if kind == CUDA:
        assert index == device.index


def test_dlpack_device_of_pinned_memory_is_on_the_host():
    assert ab.zeros(4, device="cpu", pinned=True).__dlpack_device__()[0] in (CPU, CUDA_HOST)


@pytest.mark.parametrize(
    ("asked", "name"),
    [({}, "dltensor"), ({"max_version": (0, 8)}, "dltensor"), ({"max_version": (1, 0)}, "dltensor_versioned")],
    ids=str,
)
def test_dlpack_speaks_the_version_that_the_consumer_asks_for(device, asked, name):
    assert f'"{name}"' in repr(ab.zeros(4, device=device).__dlpack__(stream=None, **asked))


@pytest.mark.memory
def test_a_capsule_that_nobody_took_gives_the_memory_back(device):
    array = ab.zeros(1 << 22, device=device)
    capsule = array.__dlpack__()
    array.close()
    ab.synchronize(device)
    free = device.free_memory
    del capsule
    ab.synchronize(device)
    assert device.free_memory > free


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)], ids=str)
def test_numpy_reads_arrays_by_dlpack(cpu, shape, dtype):
    result = np.from_dlpack(ab.array(values(shape, dtype), device=cpu))
    assert (result.shape, result.dtype) == (shape, dtype)
    np.testing.assert_array_equal(result, values(shape, dtype))


@pytest.mark.parametrize("index", [np.s_[1:], np.s_[::-1, ::2], np.s_[..., 0], np.s_[1, 2]], ids=str)
def test_numpy_reads_views_by_dlpack(cpu, index):
    view = ab.array(values((3, 4)), device=cpu)[index]
    result = np.from_dlpack(view)
    assert result.ctypes.data == view.ptr
    np.testing.assert_array_equal(result, values((3, 4))[index])


def test_dlpack_copies_to_the_cpu(device, stream, in_thread):
    array = ab.array(values(4), device=device)
    with ab.testing.Gate(stream) as gate:
        ab.fill(array, 7, stream=stream)
        asked = in_thread(lambda: np.from_dlpack(array, device="cpu", copy=True))
        assert held(asked)
        gate.open()
        result = asked.result(TIMEOUT)
    ab.fill(array, 8)
    np.testing.assert_array_equal(result, [7] * 4)
    np.testing.assert_array_equal(np.from_dlpack(array, device="cpu"), [8] * 4)


@pytest.mark.parametrize(
    ("asked", "error"),
    [((99, 0), BufferError), (1, TypeError), (("cpu", 0), TypeError), ((CPU, 0, 0), TypeError)],
    ids=str,
)
def test_dlpack_goes_to_no_other_device(device, asked, error):
    with pytest.raises(error, match=r"DLPack device|two ints|interpreted as an integer"):
        ab.zeros(4, device=device).__dlpack__(dl_device=asked)


def test_dlpack_shares_the_memory(cpu):
    array = ab.array(values(4), device=cpu)
    result = np.from_dlpack(array)
    ab.fill(array, 3)
    ab.synchronize(cpu)
    np.testing.assert_array_equal(result, np.full(4, 3))


def test_memory_given_out_by_dlpack_outlives_the_array(cpu):
    array = ab.array(values(1000), device=cpu)
    result = np.from_dlpack(array)
    array.close()
    del array
    gc.collect()
    others = [ab.zeros(1000, device=cpu) for _ in range(10)]
    ab.synchronize(cpu)
    np.testing.assert_array_equal(result, values(1000))
    assert not any(other.numpy().any() for other in others)


def test_memory_given_out_by_dlpack_may_be_dropped_first(cpu):
    array = ab.array(values(1000), device=cpu)
    result = np.from_dlpack(array)
    del result
    gc.collect()
    np.testing.assert_array_equal(array.numpy(), values(1000))


def test_memory_given_out_by_dlpack_may_be_dropped_on_another_thread(cpu, in_thread):
    given = [np.from_dlpack(ab.array(values(1000), device=cpu))]
    in_thread(given.clear).result(TIMEOUT)
    np.testing.assert_array_equal(ab.array(values(1000), device=cpu).numpy(), values(1000))


def test_dlpack_waits_for_the_work_that_writes_the_array(cpu, in_thread):
    stream, array = ab.Stream(cpu), ab.array(np.zeros(4, "float32"), device=cpu)
    with ab.testing.Gate(stream):
        ab.fill(array, 3, stream=stream)
        reading = in_thread(np.from_dlpack, array)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


def test_dlpack_waits_for_no_other_stream(cpu, in_thread):
    array = ab.full(4, 3, "float32", stream=ab.Stream(cpu))
    with ab.testing.Gate(ab.Stream(cpu)), ab.testing.Gate(ab.current_stream(cpu)):
        np.testing.assert_array_equal(in_thread(np.from_dlpack, array).result(TIMEOUT), np.full(4, 3))


def test_memory_of_a_library_without_mutable_arrays_is_read_only():
    class Immutable:
        __module__ = "jaxlib._jax"  # whose capsules are of a version that cannot say so

        def __dlpack__(self, **_):
            return data.__dlpack__()

        def __dlpack_device__(self):
            return data.__dlpack_device__()

    data = values(4)
    array = ab.from_dlpack(Immutable())
    assert array.read_only
    with pytest.raises(ValueError, match="read-only"):
        array *= 5
    np.testing.assert_array_equal(data, values(4))


@pytest.mark.parametrize("said", [None, (1,), ("cpu", 0), 1])
def test_a_dlpack_device_that_is_no_pair_of_ints_is_named(said):
    class Other:
        def __dlpack__(self, **_):
            return values(4).__dlpack__()

        def __dlpack_device__(self):
            return said

    with pytest.raises(
        TypeError, match=r"__dlpack_device__\(\) returns a pair of ints, a device's type and its number, "
    ):
        ab.from_dlpack(Other())


def test_read_only_memory_given_out_by_dlpack_stays_so():
    array = ab.asarray(read_only(values(4)))
    with pytest.raises(BufferError):
        array.__dlpack__()  # the first version of DLPack cannot say that memory is read-only
    with contextlib.suppress(BufferError):
        assert not np.from_dlpack(array).flags.writeable


def test_a_gpu_s_array_goes_out_once_the_driver_has_what_it_depends_on(device, in_thread):
    if device.kind == "cpu":
        pytest.skip("DLPack knows no streams of a CPU")
    producer, consumer = ab.Stream(device), ab.Stream(device)
    with ab.testing.Gate(producer):
        array = ab.full(4, 3, "float32", stream=producer)
        array.__dlpack__(stream=-1)  # asks for no order
        exporting = in_thread(lambda: array.__dlpack__(stream=consumer.handle))
        assert held(exporting)
        assert consumer.query()
    assert "dltensor" in repr(exporting.result(TIMEOUT))
    consumer.synchronize()
    assert producer.query()


# Out, by the array interfaces


def test_only_a_gpu_s_arrays_have_a_cuda_array_interface(device):
    assert hasattr(ab.zeros(4, device=device), "__cuda_array_interface__") == (device.kind == "cuda")
    assert not hasattr(ab.zeros(4, device="cpu", pinned=True), "__cuda_array_interface__")


def test_the_cuda_array_interface_is_of_version_3(device):
    if device.kind == "cpu":
        pytest.skip("only a GPU's arrays have it")
    view = ab.zeros((3, 4), "int16", device=device)[:, ::2]
    interface = view.__cuda_array_interface__
    assert interface["version"] == 3
    assert (interface["shape"], interface["strides"], interface["typestr"]) == ((3, 2), (8, 4), "<i2")
    assert interface["data"] == (view.ptr, False)


# In


@pytest.fixture
def gpu(device):
    if device.kind == "cpu":
        pytest.skip("only a GPU's arrays have the interface")
    return device


def with_interface(array, **changed):
    interface = array.__cuda_array_interface__ | changed
    return SimpleNamespace(__cuda_array_interface__={key: value for key, value in interface.items() if value != "no"})


@pytest.mark.parametrize("lacking", ["data", "shape", "typestr"])
def test_what_an_interface_lacks_is_named(gpu, lacking):
    with pytest.raises(ValueError, match=f"__cuda_array_interface__ lacks '{lacking}'"):
        ab.asarray(with_interface(ab.zeros(12, device=gpu), **{lacking: "no"}))


@pytest.mark.parametrize("stream", [-1, 0, 2**70])
def test_a_handle_of_no_stream_is_an_error_that_names_it(gpu, stream):
    with pytest.raises(ValueError, match=f"no stream of {gpu.alias} has the handle {stream}$"):
        ab.asarray(with_interface(ab.zeros(12, device=gpu), stream=stream))


def test_only_of_no_elements_the_address_may_be_0(gpu):
    array = ab.zeros(12, device=gpu)
    with pytest.raises(ValueError, match="12 elements is at address 0"):
        ab.asarray(with_interface(array, data=(0, False)))
    assert ab.asarray(with_interface(array, data=(0, False), shape=(0, 3))).shape == (0, 3)


def test_strides_that_leave_elements_misaligned_are_an_error(device):
    if device.kind == "cpu":
        taken = [np.zeros((1, count), "f4,u1")["f0"] for count in (1, 5)]
    else:
        memory = ab.zeros(100, "uint8", device=device)
        taken = [with_interface(memory, shape=(1, n), strides=(5 * n, 5), typestr="<f4") for n in (1, 5)]
    assert ab.asarray(taken[0]).numpy().tolist() == [[0]]  # a stride of one element leads nowhere
    with pytest.raises(ValueError, match="not aligned"):
        ab.asarray(taken[1])


def test_memory_of_another_device_than_its_owner_says_is_refused(gpu):
    class Other:
        def __init__(self, array, said):
            self.array, self.said = array, said

        def __dlpack__(self, stream=None, max_version=None):
            return self.array.__dlpack__(max_version=max_version)

        def __dlpack_device__(self):
            return self.said

    arrays = {CPU: ab.zeros(3, device="cpu"), CUDA: ab.zeros(3, device=gpu)}
    for said, kind in ((CUDA, CPU), (CPU, CUDA)):
        with pytest.raises(BufferError, match=rf"says \({said}, {gpu.index}\), but the memory is of \({kind}, "):
            ab.from_dlpack(Other(arrays[kind], (said, gpu.index)))
    assert ab.from_dlpack(Other(arrays[CUDA], (CUDA_MANAGED, gpu.index))).device is gpu
    assert ab.from_dlpack(Other(arrays[CPU], (CUDA_HOST, 0))).device is ab.Device("cpu:0")


# PyTorch, where it is installed


@pytest.fixture
def torch(device):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if device.kind == "cuda" and not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


def test_pytorch_reads_and_writes_arrays(torch, device):
    array = ab.array(values((3, 4)), device=device)
    tensor = torch.from_dlpack(array)
    assert tensor.data_ptr() == array.ptr
    tensor[0] = 0
    if device.kind == "cuda":
        torch.cuda.synchronize(device.index)
    assert not array.numpy()[0].any()
    np.testing.assert_array_equal(array.numpy()[1:], values((3, 4))[1:])


@pytest.mark.parametrize("take", [ab.asarray, ab.from_dlpack])
def test_tensors_of_pytorch_are_taken_without_a_copy(torch, device, take):
    tensor = torch.from_numpy(values((3, 4)))
    if device.kind == "cuda":
        tensor = tensor.to(device.alias)
    array = take(tensor)
    assert array.ptr == tensor.data_ptr()
    assert array.device is (device if device.kind == "cuda" else ab.Device("cpu:0"))
    del tensor
    np.testing.assert_array_equal(array.numpy(), values((3, 4)))


@pytest.mark.parametrize("version", [(), (1,), (1, 0, 0), 1])
def test_a_version_that_is_no_pair_is_an_error(device, version):
    with pytest.raises((TypeError, ValueError)):
        ab.zeros(3, device=device).__dlpack__(max_version=version)
