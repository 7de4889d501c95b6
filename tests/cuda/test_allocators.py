"""Memory of PyTorch, CuPy and RMM for our arrays, and of our pool for theirs."""

import gc

import numpy as np
import pytest

import anabranch as ab

from .conftest import imported
from .gpu import SIZE, eventually


@pytest.fixture
def rmm(cuda):
    """RMM, with a pool of its own for the GPU."""
    return imported("rmm", "RMM")


@pytest.fixture
def own(cuda):
    """Our own allocator comes back."""
    yield
    ab.set_allocator(None, cuda)
    gc.collect()
    ab.synchronize(cuda)


def in_use_torch(torch):
    return torch.cuda.memory_allocated


def in_use_cupy(cupy):
    return cupy.get_default_memory_pool().used_bytes


OTHERS = {"torch": in_use_torch, "cupy": in_use_cupy}


@pytest.fixture(params=OTHERS)
def other(request, cuda, own):
    """A library whose memory ours is made of, and how much of it is in use."""
    in_use = OTHERS[request.param](request.getfixturevalue(request.param))
    gc.collect()
    ab.set_allocator(request.param, cuda)
    return in_use


# Theirs as ours


def test_arrays_are_made_of_their_memory(other, cuda):
    before, stream = other(), ab.Stream(cuda)
    array = ab.full(SIZE, 3, "float32", stream=stream)
    assert other() >= before + 4 * SIZE
    np.testing.assert_array_equal(array.numpy(), 3)
    array.close()
    assert eventually(lambda: other() <= before)


def test_memory_comes_back_to_the_stream_in_its_order(other, cuda, delay):
    stream, addresses = ab.Stream(cuda), set()
    arrays = [ab.zeros(SIZE, "uint8", stream=stream) for _ in range(6)][:2]  # the rest is there for later
    ab.synchronize(cuda)
    delay(stream)
    for value in range(50):
        array = ab.full(SIZE, value, "uint8", stream=stream)
        addresses.add(array.ptr)
        ab.copy(arrays[value % 2], array, stream=stream)
        del array
    assert not stream.query()  # with all of that enqueued, few blocks have served
    assert len(addresses) < 10
    np.testing.assert_array_equal(arrays[0].numpy(), 48)
    np.testing.assert_array_equal(arrays[1].numpy(), 49)


def test_memory_that_another_stream_uses_is_not_given_out(other, cuda, delay):
    a, b = ab.Stream(cuda), ab.Stream(cuda)
    array, copy = ab.full(SIZE, 3, "uint8", stream=a), ab.zeros(SIZE, "uint8", stream=b)
    b.wait_stream(a)
    delay(b)
    ab.copy(copy, array, stream=b)
    del array
    gc.collect()
    again = [ab.full(SIZE, 7, "uint8", stream=a) for _ in range(8)]
    a.synchronize()
    np.testing.assert_array_equal(copy.numpy(), 3)
    assert all((each.numpy() == 7).all() for each in again)


def test_every_way_to_make_an_array_works(other, cuda):
    data = np.arange(SIZE, dtype="float32")
    array = ab.array(data, device=cuda)
    np.testing.assert_array_equal(array.numpy(), data)
    with ab.legacy_stream(cuda):
        np.testing.assert_array_equal(ab.array(array).numpy(), data)
    with ab.per_thread_stream(cuda):
        np.testing.assert_array_equal(ab.array(array).numpy(), data)


def test_memory_goes_back_from_any_thread(other, cuda, in_threads):
    before = other()
    arrays = [ab.full(SIZE, number, "uint8", device=cuda) for number in range(8)]

    def drop(number):
        total = int(arrays[number].numpy().sum(dtype=np.int64))
        arrays[number] = None
        return total

    assert in_threads(8, drop) == [SIZE * number for number in range(8)]
    assert eventually(lambda: other() <= before)


@pytest.mark.memory
def test_too_much_is_our_error_with_theirs_as_the_cause(other, cuda):
    with pytest.raises(ab.OutOfMemoryError) as caught:
        ab.empty(1 << 50, "uint8", device=cuda)
    assert type(caught.value.__cause__).__name__ == "OutOfMemoryError"
    assert ab.ones(4, device=cuda).numpy().sum() == 4


def test_rmm_s_resources_allocate(rmm, cuda, own):
    adaptor = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaAsyncMemoryResource())
    ab.set_allocator(adaptor, cuda)
    stream = ab.Stream(cuda)
    array = ab.full(SIZE, 3, "float32", stream=stream)
    assert adaptor.allocation_counts.current_bytes >= 4 * SIZE
    np.testing.assert_array_equal(array.numpy(), 3)
    array.close()
    assert eventually(lambda: adaptor.allocation_counts.current_bytes == 0)
    ab.set_allocator("rmm", cuda)
    np.testing.assert_array_equal(ab.full(10, 3, device=cuda).numpy(), 3)


# Ours as theirs


@pytest.fixture
def used(cuda):
    """How much of the GPU's memory is in use, what pools keep left out."""

    def used():
        ab.synchronize(cuda)
        return cuda.total_memory - cuda.free_memory

    return used


@pytest.mark.memory
def test_cupy_takes_memory_of_our_pool(cupy, cuda, used):
    stream = ab.Stream(cuda)
    before = used()
    cupy.cuda.set_allocator(ab.interop.cupy_allocator)
    try:
        with stream.bridge("cupy"):
            data = cupy.empty(1 << 29, "uint8")
            data.data.memset_async(3, data.nbytes)
            np.testing.assert_array_equal(data[: 1 << 10].get(), 3)
            assert used() >= before + (1 << 28)
            with pytest.raises(MemoryError):
                cupy.empty(1 << 50, "uint8")
        del data
        gc.collect()
        assert eventually(lambda: used() < before + (1 << 28))
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


def test_cupy_s_memory_is_freed_in_the_order_of_its_stream(cupy, cuda, foreign):
    stream = ab.Stream(cuda)
    cupy.cuda.set_allocator(ab.interop.cupy_allocator)
    try:
        with stream.bridge("cupy"):
            data, copy = cupy.empty(SIZE, "uint8"), cupy.empty(SIZE, "uint8")
            data.data.memset_async(3, SIZE)
            foreign.delay(stream.handle)
            copy.data.copy_from_device_async(data.data, SIZE)
            del data
            gc.collect()
        others = [ab.full(SIZE, 7, "uint8", stream=ab.Stream(cuda)) for _ in range(8)]
        ab.synchronize(cuda)
        np.testing.assert_array_equal(copy.get(), 3)
        assert all((each.numpy() == 7).all() for each in others)
        del copy
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


PYTORCH = """
    import gc, warnings
    warnings.simplefilter("ignore")
    import torch
    import anabranch as ab

    torch.cuda.memory.change_current_allocator(ab.interop.torch_allocator())
    gpu = ab.Device("cuda:0")

    def used():
        ab.synchronize(gpu)
        return gpu.total_memory - gpu.free_memory

    x = torch.zeros(10, device="cuda")
    before = used()
    big = torch.full((1 << 29,), 3, dtype=torch.uint8, device="cuda")
    assert used() >= before + (1 << 28)
    assert int(big[:1000].sum()) == 3000
    stream = ab.Stream(gpu)
    with stream.bridge("torch"):
        y = torch.ones(1000, device="cuda") * 2
        a = ab.from_dlpack(y)
        del y
        z = torch.ones(1000, device="cuda") * 5
    assert a.numpy().sum() == 2000 and float(z.sum()) == 5000
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        w = torch.ones(1000, device="cuda")
    side.synchronize()
    del a, z, w, side, big, stream
    gc.collect()
    torch.cuda.synchronize()
    assert used() < before + (1 << 28), (before, used())
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "cannot allocate" in str(error), error
    else:
        raise AssertionError
    assert float(torch.ones(1000, device="cuda").sum()) == 1000
    print("done")
    """


@pytest.mark.memory
@pytest.mark.timeout(180)
def test_pytorch_takes_memory_of_our_pool(torch, cuda, run_python):
    assert run_python(PYTORCH, timeout=150) == "done\n"


@pytest.mark.memory
def test_rmm_takes_memory_of_our_pool(rmm, cuda, used):
    before, resource = used(), ab.interop.rmm_resource(cuda)
    stream = ab.Stream(cuda)
    buffer = rmm.DeviceBuffer(size=1 << 29, stream=rmm.pylibrmm.stream.Stream(obj=stream), mr=resource)
    assert used() >= before + (1 << 28)
    del buffer
    gc.collect()
    assert eventually(lambda: used() < before + (1 << 28))
