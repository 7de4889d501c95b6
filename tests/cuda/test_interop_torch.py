"""Arrays and tensors over one memory: no copy, in order with what both sides have pending, alive while needed."""

import gc
import threading
from concurrent.futures import wait

import numpy as np
import pytest

import anabranch as ab

from .gpu import SIZE, eventually, values

TIMEOUT = 30

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_taker = pytest.mark.parametrize("take", [ab.asarray, ab.from_dlpack])


@pytest.fixture
def theirs(torch):
    """A stream of PyTorch's, current there."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield stream


# No copy


@each_dtype
@each_taker
def test_a_tensor_is_taken_without_a_copy(torch, cuda, take, dtype):
    tensor = torch.from_numpy(values((3, 4), dtype)).cuda()
    array = take(tensor)
    assert (array.ptr, array.device) == (tensor.data_ptr(), cuda)
    assert (array.shape, array.dtype) == ((3, 4), np.dtype(dtype))
    np.testing.assert_array_equal(array.numpy(), values((3, 4), dtype))


@each_dtype
def test_an_array_is_given_out_without_a_copy(torch, cuda, dtype):
    array = ab.array(values((3, 4), dtype), device=cuda)
    tensor = torch.from_dlpack(array)
    assert (tensor.data_ptr(), tensor.device.index) == (array.ptr, cuda.index)
    np.testing.assert_array_equal(tensor.cpu().numpy(), values((3, 4), dtype))


@each_taker
def test_strided_tensors_are_taken_as_they_are(torch, cuda, take):
    data = values((4, 6, 5), "float32")
    tensor = torch.from_numpy(data).cuda()
    for theirs, expected in [
        (tensor[1:, ::2], data[1:, ::2]),
        (tensor.permute(2, 0, 1), data.transpose(2, 0, 1)),
        (tensor[..., 3], data[..., 3]),
        (tensor[1, 2, 3], data[1, 2, 3]),
        (tensor[:0], data[:0]),
        (tensor[0, 0, 0].expand(3, 2), np.broadcast_to(data[0, 0, 0], (3, 2))),
    ]:
        array = take(theirs)
        # What has one element along a dimension, or none, has any stride there.
        along = [d for d in range(array.ndim) if array.shape[d] > 1]
        assert [array.strides[d] for d in along] == [4 * theirs.stride(d) for d in along]
        np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("index", [np.s_[1:, ::2], np.s_[..., 3], np.s_[1, 2, 3], np.s_[:0]], ids=str)
def test_views_are_given_out_as_they_are(torch, cuda, index):
    data = values((4, 6, 5), "float32")
    view = ab.array(data, device=cuda)[index]
    tensor = torch.from_dlpack(view)
    assert tuple(4 * stride for stride in tensor.stride()) == view.strides or view.size == 0
    np.testing.assert_array_equal(tensor.cpu().numpy(), data[index])


@each_taker
def test_a_tensor_of_the_cpu_is_host_memory(torch, cuda, take):
    tensor = torch.from_numpy(values(100, "float32"))
    array = take(tensor)
    assert (array.device, array.ptr) == (ab.Device("cpu:0"), tensor.data_ptr())
    on_gpu = ab.empty(100, device=cuda)
    ab.copy(on_gpu, array)
    np.testing.assert_array_equal(on_gpu.numpy(), values(100, "float32"))


@each_taker
def test_a_pinned_tensor_is_host_memory(torch, cuda, take):
    tensor = torch.from_numpy(values(100, "float32")).pin_memory()
    array = take(tensor)
    assert (array.device, array.ptr) == (ab.Device("cpu:0"), tensor.data_ptr())
    on_gpu = ab.empty(100, device=cuda)
    ab.copy(on_gpu, array)
    np.testing.assert_array_equal(on_gpu.numpy(), values(100, "float32"))


def test_pinned_arrays_are_tensors_of_the_cpu(torch, cuda):
    array = ab.array(values(100, "float32"), device="cpu", pinned=True)
    tensor = torch.from_dlpack(array)
    assert (tensor.data_ptr(), tensor.device.type) == (array.ptr, "cpu")
    assert tensor.is_pinned()
    np.testing.assert_array_equal(tensor.cuda().cpu().numpy(), values(100, "float32"))


def test_a_tensor_of_the_cpu_is_no_argument_of_a_kernel_on_the_gpu(torch, cuda, kernels):
    array, stream = ab.asarray(torch.zeros(4, dtype=torch.int32)), ab.Stream(cuda)
    with pytest.raises(ab.DeviceError, match="'x'"):
        ab.launch(kernels.add, ab.LaunchConfig(1, 4), array, ab.zeros(4, "int32", device=cuda), 1, 4, stream=stream)


def test_a_tensor_with_a_gradient_is_refused_by_pytorch(torch):
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        ab.asarray(torch.zeros(4, device="cuda", requires_grad=True))


# Order


@each_taker
@pytest.mark.parametrize("reader", ["created", "legacy", "per-thread"])
def test_a_taken_tensor_is_read_after_it_was_written(torch, theirs, foreign, cuda, take, reader):
    ours = {"created": ab.Stream, "legacy": ab.legacy_stream, "per-thread": ab.per_thread_stream}[reader](cuda)
    tensor = torch.zeros(SIZE, device="cuda")
    foreign.delay(theirs.cuda_stream)
    tensor.fill_(3)
    with ours:
        array = take(tensor)
        copy = ab.empty(SIZE)
        ab.copy(copy, array)
    np.testing.assert_array_equal(copy.numpy(), 3)


def test_a_readback_of_a_taken_tensor_comes_after_its_write(torch, theirs, foreign, cuda):
    tensor = torch.zeros(SIZE, device="cuda")
    foreign.delay(theirs.cuda_stream)
    tensor.fill_(3)
    np.testing.assert_array_equal(ab.asarray(tensor).numpy(), 3)


def test_an_array_given_out_is_read_after_it_was_written(torch, theirs, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=ours)
    delay(ours)
    ab.fill(array, 3, stream=ours)
    tensor = torch.from_dlpack(array)
    assert not theirs.query()
    np.testing.assert_array_equal((tensor + 1).cpu().numpy(), 4)


def test_an_array_given_out_is_written_after_it_was_read(torch, theirs, cuda, delay):
    ours = ab.Stream(cuda)
    array, copy = ab.ones(SIZE, stream=ours), ab.zeros(SIZE, stream=ours)
    delay(ours)
    ab.copy(copy, array, stream=ours)
    torch.from_dlpack(array).fill_(9)
    np.testing.assert_array_equal(copy.numpy(), 1)
    theirs.synchronize()
    np.testing.assert_array_equal(array.numpy(), 9)


def test_an_array_given_out_is_read_after_what_its_stream_holds_back(torch, cuda, in_thread):
    ours, ready = ab.Stream(cuda), threading.Event()
    array = ab.zeros(SIZE, stream=ours)
    function = ours.submit(ready.wait)
    ab.fill(array, 3, stream=ours)
    # The call waits for what the driver does not know of yet, and for no more.
    reading = in_thread(lambda: (torch.from_dlpack(array) + 1).cpu().numpy())
    assert not wait([reading], timeout=0.05).done
    ready.set()
    np.testing.assert_array_equal(reading.result(TIMEOUT), 4)
    assert function.result(TIMEOUT)


def test_an_array_given_out_waits_for_every_stream_that_uses_it(torch, theirs, cuda, delay):
    streams = [ab.Stream(cuda) for _ in range(4)]
    array = ab.zeros(4 * SIZE, device=cuda)
    for number, stream in enumerate(streams):
        stream.wait_stream(ab.current_stream(cuda))
        delay(stream, 20 * (number + 1))
        ab.fill(array[number * SIZE : (number + 1) * SIZE], number + 1, stream=stream)
    tensor = torch.from_dlpack(array).clone()
    np.testing.assert_array_equal(tensor.cpu().numpy(), np.repeat([1, 2, 3, 4], SIZE))


def test_a_consumer_that_wants_no_order_gets_none(torch, theirs, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=ours)
    delay(ours)
    ab.fill(array, 3, stream=ours)
    torch.utils.dlpack.from_dlpack(array.__dlpack__(stream=-1))
    assert theirs.query()
    assert not ours.query()


def test_a_consumer_that_names_no_stream_gets_the_legacy_one(torch, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, stream=ours)
    delay(ours)
    ab.fill(array, 3, stream=ours)
    tensor = torch.utils.dlpack.from_dlpack(array.__dlpack__())
    np.testing.assert_array_equal((tensor + 1).cpu().numpy(), 4)  # on PyTorch's default stream, which is that


def test_memory_goes_to_and_fro_in_order(torch, theirs, foreign, cuda, delay):
    ours = ab.Stream(cuda)
    array = ab.zeros(SIZE, "int32", stream=ours)
    tensor = torch.from_dlpack(array)
    wrapped = ab.Stream.from_external(theirs.cuda_stream, cuda)
    for round_number in range(1, 6):
        foreign.delay(theirs.cuda_stream, 6)
        tensor.add_(1)
        ours.wait_stream(wrapped)
        seen = ab.zeros(SIZE, "int32", stream=ours)
        delay(ours, 5)
        ab.copy(seen, array, stream=ours)
        wrapped.wait_stream(ours)
        np.testing.assert_array_equal(seen.numpy(), round_number)


# Lifetime


def test_a_taken_tensor_is_kept_until_our_work_with_it_is_done(torch, theirs, cuda, delay):
    gc.collect()
    before = torch.cuda.memory_allocated()
    tensor = torch.full((SIZE,), 3.0, device="cuda")
    address, ours = tensor.data_ptr(), ab.Stream(cuda)
    with ours:
        copy = ab.zeros(SIZE)
        array = ab.asarray(tensor)
        delay(ours)
        ab.copy(copy, array)
    del tensor, array
    gc.collect()
    # Its allocator would give a block that was free to this one, which is written at once.
    again = torch.full((SIZE,), 7.0, device="cuda")
    assert again.data_ptr() != address
    np.testing.assert_array_equal(copy.numpy(), 3)
    del again
    assert eventually(lambda: torch.cuda.memory_allocated() <= before)


def test_a_view_keeps_a_taken_tensor(torch, cuda):
    gc.collect()
    before = torch.cuda.memory_allocated()
    view = ab.asarray(torch.arange(SIZE, device="cuda"))[5:10]
    gc.collect()
    others = [torch.zeros(SIZE, dtype=torch.int64, device="cuda") for _ in range(4)]
    np.testing.assert_array_equal(view.numpy(), range(5, 10))
    del view, others
    assert eventually(lambda: torch.cuda.memory_allocated() <= before)


def test_an_array_given_out_is_kept_by_the_tensor(torch, cuda):
    array = ab.full(SIZE, 3, device=cuda)
    tensor = torch.from_dlpack(array)
    array.close()
    others = [ab.full(SIZE, 7, device=cuda) for _ in range(4)]
    ab.synchronize(cuda)
    assert bool((tensor == 3).all())
    assert all((other.numpy() == 7).all() for other in others)


def test_an_array_given_out_is_kept_until_their_work_with_it_is_done(torch, theirs, foreign, cuda):
    ours = ab.Stream(cuda)
    array = ab.full(SIZE, 3, stream=ours)
    tensor = torch.from_dlpack(array)
    foreign.delay(theirs.cuda_stream)
    doubled = tensor * 2
    del array, tensor
    gc.collect()
    others = [ab.full(SIZE, 7, stream=ours) for _ in range(8)]
    ours.synchronize()
    np.testing.assert_array_equal(doubled.cpu().numpy(), 6)
    assert all((other.numpy() == 7).all() for other in others)


@pytest.mark.memory
def test_memory_given_out_comes_back(torch, cuda):
    ab.synchronize(cuda)
    before = cuda.free_memory
    tensor = torch.from_dlpack(ab.zeros(512 << 20, "uint8", device=cuda))
    assert cuda.free_memory <= before - (256 << 20)
    del tensor
    assert eventually(lambda: cuda.free_memory > before - (256 << 20))


def test_tensors_are_dropped_on_any_thread(torch, cuda, in_threads):
    arrays = [ab.full(SIZE, number, "int32", device=cuda) for number in range(8)]
    tensors = [torch.from_dlpack(array) for array in arrays]
    taken = [ab.asarray(tensor + 1) for tensor in tensors]

    def drop(number):
        total = int(taken[number].numpy().sum(dtype=np.int64))
        arrays[number] = tensors[number] = taken[number] = None
        return total

    assert in_threads(8, drop) == [SIZE * (number + 1) for number in range(8)]
