"""Allocators of other libraries for our arrays, and our pool for theirs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from anabranch._memory.allocator import PoolBlock, core_library
from anabranch.interop._bridge import LIBRARIES

if TYPE_CHECKING:
    from anabranch._device.device import Device
    from anabranch._memory.allocator import Allocator
    from anabranch._stream.stream import Stream


class TorchMemory:
    """PyTorch's caching allocator."""

    def __init__(self, index: int) -> None:
        self._cuda = LIBRARIES["torch"].load("the allocator 'torch'").cuda
        self._index = index

    def allocate(self, nbytes: int, stream: Stream) -> int:
        """Return the address of a block for the stream."""
        handle = stream.handle if stream.handle != 1 else 0  # PyTorch's cache keeps the default stream's blocks under 0
        return int(self._cuda.caching_allocator_alloc(nbytes, self._index, handle))

    def deallocate(self, address: int, nbytes: int, stream: Stream) -> None:
        """Return the block to the stream's cache."""
        self._cuda.caching_allocator_delete(address)

    def __repr__(self) -> str:
        return "the allocator of PyTorch"


class CuPyMemory:
    """CuPy's current allocator, usually its pool."""

    def __init__(self) -> None:
        self._library = LIBRARIES["cupy"]
        self._cupy = self._library.load("the allocator 'cupy'")
        self._blocks: dict[int, Any] = {}

    def allocate(self, nbytes: int, stream: Stream) -> int:
        """Return the address of a block for the stream."""
        with ExitStack() as stack:
            self._library.enter(self._cupy, stream, stack)
            block = self._cupy.cuda.alloc(nbytes)
        self._blocks[block.ptr] = block
        return int(block.ptr)

    def deallocate(self, address: int, nbytes: int, stream: Stream) -> None:
        """Release the block, which CuPy keeps for the same stream."""
        with ExitStack() as stack:
            self._library.enter(self._cupy, stream, stack)
            del self._blocks[address]

    def __repr__(self) -> str:
        return "the allocator of CuPy"


class RmmMemory:
    """A memory resource of RMM, whose methods take RMM's own streams."""

    def __init__(self, rmm: Any, resource: Any) -> None:
        self._stream = rmm.pylibrmm.stream.Stream
        self._resource = resource

    def allocate(self, nbytes: int, stream: Stream) -> int:
        """Return the address of new memory."""
        return int(self._resource.allocate(nbytes, self._stream(obj=stream)))

    def deallocate(self, address: int, nbytes: int, stream: Stream) -> None:
        """Free the memory."""
        self._resource.deallocate(address, nbytes, self._stream(obj=stream))

    def __repr__(self) -> str:
        return repr(self._resource)


def _load_rmm(user: str) -> Any:
    try:
        import rmm
    except ModuleNotFoundError as error:
        message = f"{user} needs the module rmm: pip install rmm-cu12 or rmm-cu13 ({error})"
        raise ModuleNotFoundError(message, name=error.name) from error
    return rmm


def as_allocator(allocator: str | Any, device: Device) -> Allocator:
    """Return the allocator object for a user's argument."""
    rmm = sys.modules.get("rmm")
    if not isinstance(allocator, str):
        resource = getattr(getattr(rmm, "mr", None), "DeviceMemoryResource", ())
        return RmmMemory(rmm, allocator) if isinstance(allocator, resource) else allocator
    if allocator not in ("cupy", "torch", "rmm"):
        raise ValueError(f"an allocator is 'cupy', 'torch', 'rmm' or an object, not {allocator!r}")
    if device.kind != "cuda":
        raise ValueError(f"{allocator!r} allocates memory of GPUs, not of {device.alias}")
    if allocator == "rmm":
        rmm = _load_rmm("the allocator 'rmm'")
        return RmmMemory(rmm, rmm.mr.get_per_device_resource(device.index))
    return TorchMemory(device.index) if allocator == "torch" else CuPyMemory()


def cupy_allocator(nbytes: int) -> Any:
    """Allocate for CuPy from our memory pool: ``cupy.cuda.set_allocator(ab.interop.cupy_allocator)``.

    On CuPy's current stream and device; the memory is freed in the order of the same stream. Any thread. The pool keeps
    freed memory itself, so no pool of CuPy's is needed in between.

    Parameters
    ----------
    nbytes : int

    Returns
    -------
    cupy.cuda.MemoryPointer

    Raises
    ------
    OutOfMemoryError
        If the device has too little memory; it derives from MemoryError.
    """
    cuda = LIBRARIES["cupy"].load("interop.cupy_allocator").cuda
    index = cuda.runtime.getDevice()
    stream = cuda.get_current_stream()
    block = PoolBlock(nbytes, index, stream.ptr, stream)
    return cuda.MemoryPointer(cuda.UnownedMemory(block.address, nbytes, block, index), 0)


def torch_allocator() -> Any:
    """Return an allocator for PyTorch that takes memory from our pool.

    To be set before PyTorch has used a GPU, with ``torch.cuda.memory.change_current_allocator``, or for a block, with
    ``torch.cuda.use_mem_pool(torch.cuda.MemPool(ab.interop.torch_allocator().allocator()))``.
    Allocating and freeing are in the order of PyTorch's stream, as C functions without the interpreter lock.

    Returns
    -------
    torch.cuda.memory.CUDAPluggableAllocator
        If memory runs out, PyTorch raises a RuntimeError that says how much there is.

    Notes
    -----
    PyTorch's statistics of memory, and captures of ``torch.cuda.CUDAGraph``, need its own allocator.
    """
    memory = LIBRARIES["torch"].load("interop.torch_allocator").cuda.memory
    return memory.CUDAPluggableAllocator(core_library(), "anabranch_allocate", "anabranch_free")


def rmm_resource(device: Any = None) -> Any:
    """Return a memory resource for RMM that takes memory from our pool.

    To be set by ``rmm.mr.set_current_device_resource(ab.interop.rmm_resource())``.

    Parameters
    ----------
    device : Device or str, optional
        A GPU. None: the current device.

    Returns
    -------
    rmm.mr.CallbackMemoryResource

    Raises
    ------
    ValueError
        For a CPU device.
    """
    from anabranch._device.device import Device, current_device

    gpu = current_device() if device is None else Device(device)
    if gpu.kind != "cuda":
        raise ValueError(f"RMM manages memory of GPUs, not of {gpu.alias}")
    blocks: dict[int, PoolBlock] = {}

    def allocate(nbytes: int, stream: Any) -> int:
        block = PoolBlock(nbytes, gpu.index, stream.__cuda_stream__()[1], stream)
        if block.address:  # several empty allocations share the address 0
            blocks[block.address] = block
        return block.address

    def deallocate(address: int, nbytes: int, stream: Any) -> None:
        if address:
            blocks.pop(address).free_on(stream.__cuda_stream__()[1])

    return _load_rmm("interop.rmm_resource").mr.CallbackMemoryResource(allocate, deallocate)
