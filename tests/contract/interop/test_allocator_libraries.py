"""Our memory as other libraries' and theirs as ours. The libraries are stand-ins with what is called of them."""

import ctypes
import gc
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import anabranch as ab

from .libraries import ForeignStream, cupy, torch

pytestmark = pytest.mark.thread_unsafe(
    reason="an allocator is of a device, for all threads; stand-ins for libraries, too"
)

BYTES = 1 << 20


@pytest.fixture
def gpu(device):
    if device.kind == "cpu":
        pytest.skip("the libraries allocate memory of GPUs")
    yield device
    ab.set_allocator(None, device)
    gc.collect()
    ab.synchronize(device)


@pytest.fixture
def arena(gpu):
    """Addresses of memory that nobody else has."""
    array = ab.zeros(1 << 16, "uint8", device=gpu)
    ab.synchronize(gpu)
    return iter(range(array.ptr, array.ptr + array.nbytes, 1 << 12)), array


def add_memory(module, arena):
    """Give the stand-in of CuPy an allocator, which notes the stream that is current."""
    calls = []

    class Block:
        def __init__(self, nbytes):
            self.ptr = next(arena[0])
            calls.append(("allocate", nbytes, self.stream()))

        def stream(self):
            return module.cuda.get_current_stream(module.state.device).ptr

        def __del__(self):
            calls.append(("free", self.stream()))

    module.cuda.alloc = Block
    module.cuda.runtime = SimpleNamespace(getDevice=lambda: module.state.device)
    inner = module.cuda.get_current_stream
    module.cuda.get_current_stream = lambda index=None: inner(module.state.device if index is None else index)
    module.cuda.UnownedMemory = lambda *arguments: SimpleNamespace(arguments=arguments)
    module.cuda.MemoryPointer = lambda memory, offset: SimpleNamespace(memory=memory, offset=offset)
    return calls


# Theirs as ours


def test_cupy_allocates_on_its_current_stream(gpu, arena, monkeypatch):
    module = cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    calls, stream = add_memory(module, arena), ab.Stream(gpu)
    ab.set_allocator("cupy", gpu)
    array = ab.full(100, 3, "float32", stream=stream)
    assert calls == [("allocate", 400, stream.handle)]
    np.testing.assert_array_equal(array.numpy(), 3)
    array.close()
    assert calls[1:] == [("free", stream.handle)]
    assert module.cuda.get_current_stream(gpu.index).ptr == 0


@pytest.mark.parametrize("legacy", [False, True])
def test_pytorch_allocates_for_the_stream(gpu, arena, monkeypatch, legacy):
    module, calls = torch(), []
    monkeypatch.setitem(sys.modules, "torch", module)

    def allocate(nbytes, index, stream):
        calls.append((nbytes, index, stream))
        return next(arena[0])

    module.cuda.caching_allocator_alloc = allocate
    module.cuda.caching_allocator_delete = calls.append
    ab.set_allocator("torch", gpu)
    stream = ab.legacy_stream(gpu) if legacy else ab.Stream(gpu)
    array = ab.full(100, 3, "float32", stream=stream)
    assert calls == [(400, gpu.index, 0 if legacy else stream.handle)]
    np.testing.assert_array_equal(array.numpy(), 3)
    address = array.ptr
    array.close()
    assert calls[1:] == [address]


def rmm(arena):
    """RMM: its resources take its own streams only."""
    module, calls = ModuleType("rmm"), []

    class Stream(ForeignStream):
        def __init__(self, obj):
            super().__init__(obj.__cuda_stream__()[1])

    class DeviceMemoryResource:
        def allocate(self, nbytes, stream):
            assert type(stream) is Stream
            calls.append(("allocate", nbytes, stream.handle))
            return next(arena[0])

        def deallocate(self, pointer, nbytes, stream):
            assert type(stream) is Stream
            calls.append(("free", nbytes, stream.handle))

    resources = {}
    module.pylibrmm = SimpleNamespace(stream=SimpleNamespace(Stream=Stream))
    module.mr = SimpleNamespace(
        DeviceMemoryResource=DeviceMemoryResource,
        get_per_device_resource=lambda index: resources.setdefault(index, DeviceMemoryResource()),
        CallbackMemoryResource=lambda allocate, free: SimpleNamespace(allocate=allocate, deallocate=free),
    )
    return module, calls


@pytest.mark.parametrize("by_name", [False, True])
def test_rmm_allocates_with_its_own_streams(gpu, arena, monkeypatch, by_name):
    module, calls = rmm(arena)
    monkeypatch.setitem(sys.modules, "rmm", module)
    ab.set_allocator("rmm" if by_name else module.mr.DeviceMemoryResource(), gpu)
    stream = ab.Stream(gpu)
    array = ab.full(100, 3, "float32", stream=stream)
    np.testing.assert_array_equal(array.numpy(), 3)
    array.close()
    assert calls == [("allocate", 400, stream.handle), ("free", 400, stream.handle)]


@pytest.mark.parametrize("name", ["cupy", "torch", "rmm"])
def test_a_library_that_is_not_installed_is_refused(gpu, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ModuleNotFoundError, match=f"the allocator '{name}' needs the module {name}: pip install {name}"
    ):
        ab.set_allocator(name, gpu)


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_a_module_of_the_same_name_is_refused(gpu, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, ModuleType("theirs"))
    with pytest.raises(ModuleNotFoundError, match=f"the allocator '{name}' needs .*'theirs'"):
        ab.set_allocator(name, gpu)


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [("cupy", "cupy_allocator", [1]), ("torch", "torch_allocator", []), ("rmm", "rmm_resource", ["cuda:0"])],
)
def test_a_library_that_is_not_installed_gets_none_of_our_memory(gpu, monkeypatch, name, function, arguments):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=f"interop.{function} needs the module {name}: pip install {name}"):
        getattr(ab.interop, function)(*arguments)


# Ours as theirs


def free_memory(device):
    ab.synchronize(device)
    return device.free_memory


@pytest.mark.memory
def test_cupy_gets_memory_of_our_pool(gpu, monkeypatch):
    module = cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    add_memory(module, None)
    free, stream = free_memory(gpu), ab.Stream(gpu)
    with stream.bridge("cupy"):
        pointer = ab.interop.cupy_allocator(BYTES)
        address, size, block, index = pointer.memory.arguments
        assert (size, index, pointer.offset) == (BYTES, gpu.index, 0)
        assert address % 256 == 0
        assert address == block.address
        assert free_memory(gpu) < free
    del pointer, block
    assert free_memory(gpu) >= free
    with stream.bridge("cupy"):
        assert ab.interop.cupy_allocator(0).memory.arguments[0] == 0
        with pytest.raises(ab.OutOfMemoryError, match=gpu.alias):
            ab.interop.cupy_allocator(1 << 60)


def test_each_library_may_have_the_other_s_memory(gpu, monkeypatch):
    module = cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    add_memory(module, None)

    def allocate(nbytes):
        pointer = ab.interop.cupy_allocator(nbytes)
        pointer.ptr = pointer.memory.arguments[0]
        return pointer

    module.cuda.alloc = allocate
    ab.set_allocator("cupy", gpu)
    np.testing.assert_array_equal(ab.full(100, 3, device=gpu).numpy(), 3)


@pytest.mark.memory
def test_rmm_gets_memory_of_our_pool(gpu, monkeypatch):
    module, _ = rmm(None)
    monkeypatch.setitem(sys.modules, "rmm", module)
    a, b = ab.Stream(gpu), ab.Stream(gpu)
    free, resource = free_memory(gpu), ab.interop.rmm_resource(gpu)
    address = resource.allocate(BYTES, ForeignStream(a.handle))
    assert free_memory(gpu) < free
    resource.deallocate(address, BYTES, ForeignStream(b.handle))
    assert free_memory(gpu) >= free
    with pytest.raises(ValueError, match="cpu:0"):
        ab.interop.rmm_resource("cpu")


def test_rmm_may_allocate_no_bytes_several_times(gpu, monkeypatch):
    module, _ = rmm(None)
    monkeypatch.setitem(sys.modules, "rmm", module)
    stream, resource = ForeignStream(ab.Stream(gpu).handle), ab.interop.rmm_resource(gpu)
    addresses = [resource.allocate(0, stream) for _ in range(2)]
    for address in addresses:
        resource.deallocate(address, 0, stream)


@pytest.fixture
def functions(gpu, monkeypatch):
    """What PyTorch makes of the allocator: two C functions."""
    module = torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    module.cuda.memory = SimpleNamespace(CUDAPluggableAllocator=lambda *arguments: arguments)
    path, allocate, free = ab.interop.torch_allocator()
    library = ctypes.CDLL(path)
    allocate, free = getattr(library, allocate), getattr(library, free)
    allocate.restype, free.restype = ctypes.c_void_p, None
    allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    return SimpleNamespace(allocate=allocate, free=free)


@pytest.mark.memory
def test_pytorch_gets_memory_of_our_pool_by_c_functions(gpu, functions):
    stream = ab.Stream(gpu)
    handles = (stream.handle, None, 1, 2)
    # What the driver takes for itself when a stream is first used, it keeps.
    for handle in handles:
        functions.free(functions.allocate(BYTES, gpu.index, handle), BYTES, gpu.index, handle)
        ab.per_thread_stream(gpu).synchronize()
    free = free_memory(gpu)
    for handle in handles:
        address = functions.allocate(BYTES, gpu.index, handle)
        assert address % 256 == 0
        assert free_memory(gpu) < free
        functions.free(address, BYTES, gpu.index, handle)
        ab.per_thread_stream(gpu).synchronize()
        assert free_memory(gpu) >= free
    assert functions.allocate(0, gpu.index, None) is None
    functions.free(None, 0, gpu.index, None)


@pytest.mark.memory
def test_a_stream_that_was_dropped_may_be_named_in_a_free(gpu, functions):
    free, stream = free_memory(gpu), ab.Stream(gpu)
    handle, address = stream.handle, functions.allocate(BYTES, gpu.index, stream.handle)
    del stream
    functions.free(address, BYTES, gpu.index, handle)
    assert free_memory(gpu) >= free


def test_the_c_functions_are_for_any_thread(gpu, functions, in_threads):
    streams = [ab.Stream(gpu) for _ in range(4)]
    start = threading.Barrier(4)

    def body(number):
        start.wait(20)
        handle = streams[number].handle
        for _ in range(100):
            addresses = {functions.allocate(1000, gpu.index, handle) for _ in range(4)}
            assert len(addresses) == 4
            for address in addresses:
                functions.free(address, 1000, gpu.index, handle)
        return True

    assert all(in_threads(4, body))
