"""External allocators for our arrays, and our pool as an allocator for other libraries."""

cimport cython
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t
from libcpp.memory cimport unique_ptr

from anabranch._core.core import finalizing

from anabranch._core.core cimport Activation, CStream, MemoryKind, Ref, Storage, forked, translate
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._stream.host_threads cimport Owner, discard_owner, ensure_host_thread
from anabranch._stream.stream cimport Stream

from anabranch._core.errors import OutOfMemoryError

cdef extern from "anabranch/memory/allocator.hpp" nogil:
    void* anabranch_allocate(ssize_t, int, void*) except +translate
    void anabranch_free(void*, ssize_t, int, void*)

cdef extern from *:
    """
    #include <dlfcn.h>
    static const char* path_of_core() {
      Dl_info info;
      return dladdr(reinterpret_cast<void*>(&anabranch_allocate), &info) ? info.dli_fname : "";
    }
    """
    const char* path_of_core()

cdef extern from *:
    """
    // The function does not throw, but Cython does not declare it noexcept in C++.
    static anabranch::Storage::Release as_release(void (*discard)(void*)) {
      return reinterpret_cast<anabranch::Storage::Release>(discard);
    }
    """
    ctypedef void (*Release "anabranch::Storage::Release")(void*) noexcept nogil
    Release as_release(void (*)(void*) noexcept nogil) nogil

# Alignment that every GPU allocator and the system's provide; sufficient for every dtype.
cdef enum:
    alignment = 16


@cython.final
@cython.no_gc_clear
cdef class _Block(Owner):
    """A block from an external allocator."""
    cdef DeviceBase device
    cdef object allocator
    cdef Stream stream
    cdef object pointer
    cdef size_t bytes

    @cython.unraisable_tracebacks(False)
    def __dealloc__(self):
        # Frees only a block that no array owns because it was misaligned. Any Python thread; holds the interpreter lock
        # (on free-threaded builds, an attached thread state) and no lock of the core: `deallocate` may be Python code.
        self.give_back()

    cdef int give_back(self) except -1:
        cdef unique_ptr[Activation] _activation
        cdef object pointer = self.pointer
        self.pointer = None
        if pointer is None or forked() or finalizing():
            return 0
        _activation = self.device.backend.activate()
        self.allocator.deallocate(pointer, self.bytes, self.stream)
        return 0

    cdef int allocate(self) except -1:
        cdef unique_ptr[Activation] _activation = self.device.backend.activate()
        try:
            found = self.allocator.allocate(self.bytes, self.stream)
        except Exception as error:
            # PyTorch's OutOfMemoryError does not derive from MemoryError.
            if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
                raise self.lacking() from error
            raise
        if isinstance(found, bool) or not hasattr(type(found), "__index__"):
            raise TypeError(f"{self.allocator!r} allocated {found!r}, which is no address")
        found = found.__index__()
        if found == 0:
            raise self.lacking()
        self.pointer = found
        if not 0 < found < 2**64 or found % alignment:
            raise ValueError(f"{self.allocator!r} allocated {found:#x}, which is not aligned to {alignment} bytes")
        return 0

    cdef object lacking(self):
        return OutOfMemoryError(
            f"cannot allocate {self.bytes} bytes on {self.device.alias}: {self.allocator!r} has no more")


cdef Ref[Storage] allocate_with(DeviceBase device, Stream stream, size_t bytes) except *:
    cdef Ref[Storage] storage
    cdef _Block block = _Block.__new__(_Block)
    cdef uintptr_t address
    cdef CStream* target = NULL
    block.device = device
    # Other threads may set another one, and so end this one.
    with cython.critical_section(device):
        block.allocator = device.allocator
    if block.allocator is None:
        if stream is not None:
            target = stream.get()
        return Storage.allocate(deref(device.backend), target, bytes, MemoryKind.device)
    # A private wrapper, which no user can close.
    block.stream = Stream(device, name="allocation") if stream is None else Stream.from_external(stream)
    # Atomics of one and two bytes exchange the aligned 4-byte word that contains them.
    block.bytes = (bytes + 3) // 4 * 4
    block.allocate()
    if stream is None:
        block.stream.synchronize()
    ensure_host_thread()
    address = block.pointer
    storage = Storage.entrust(
        deref(block.stream.get()), <void*>address, bytes, <void*>block, as_release(discard_owner))
    Py_INCREF(block)
    return storage


def set_allocator(allocator, device=None):
    """Set the allocator for later arrays of a device.

    Existing arrays keep their memory. The allocator is not used for pinned memory, for the memory of captures, or for
    the library's internal memory.

    Parameters
    ----------
    allocator : {"cupy", "torch", "rmm"} or object or None
        A library's name: the allocator that this library has for its own arrays. An object:
        ``allocate(nbytes, stream)`` returns the address, an int, of memory for work that `stream` does from then on,
        aligned to 16 bytes; ``deallocate(address, nbytes, stream)`` takes it back, with the same arguments, for such
        work. The stream speaks ``__cuda_stream__``. A memory resource of RMM's is one. None: our own pool again.
    device : Device or str, optional
        None: the current device.

    Raises
    ------
    TypeError
        If the object lacks one of the two methods.
    ValueError
        For another name, or a name for a CPU device.
    ModuleNotFoundError
        If that library is not installed.

    Notes
    -----
    ``deallocate`` is called when no other stream uses the memory any more: in the order of `stream` on a GPU, after all
    uses on a CPU. The thread that drops the last reference calls it, or a thread of this library, with the device
    current. Its exceptions go to `sys.unraisablehook`. At the end of the process it is no longer called. A MemoryError
    of ``allocate`` becomes the cause of an `OutOfMemoryError`; the caller gets other exceptions unchanged.

    Examples
    --------
    >>> import anabranch as ab
    >>> ab.set_allocator(None, "cpu")
    """
    cdef DeviceBase target = as_device(device)
    if allocator is not None:
        from anabranch.interop._memory import as_allocator

        allocator = as_allocator(allocator, target)
        for method in ("allocate", "deallocate"):
            if not callable(getattr(allocator, method, None)):
                raise TypeError(f"an allocator has {method}(), which {type(allocator).__name__} lacks")
    # The old one ends outside of the section: it may be Python code.
    with cython.critical_section(target):
        target.allocator, allocator = allocator, target.allocator


@cython.final
@cython.no_gc_clear
cdef class PoolBlock:
    """Memory of a GPU from our own pool, for another library, in the order of its stream.

    Parameters
    ----------
    nbytes, index : int
        Size, and number of the GPU.
    stream : int
        Handle of the stream that allocates and frees; 0 is the legacy stream.
    keep : object
        Kept alive as long as the block, so that the stream exists.
    """
    cdef void* pointer
    cdef ssize_t bytes
    cdef int index
    cdef void* stream
    cdef object keep

    def __init__(self, ssize_t nbytes, int index, uintptr_t stream, keep=None):
        if self.pointer != NULL:
            raise RuntimeError("a PoolBlock is made once")
        self.index = index
        self.stream = <void*>stream
        self.bytes = nbytes
        self.keep = keep
        self.pointer = anabranch_allocate(nbytes, index, self.stream)

    def __dealloc__(self):
        # Any Python thread; holds the interpreter lock and no lock of the core. It keeps the interpreter lock because
        # the driver frees in stream order without waiting.
        if self.pointer != NULL:
            anabranch_free(self.pointer, self.bytes, self.index, self.stream)

    def free_on(self, uintptr_t stream):
        """Free the block now, in the order of another stream."""
        cdef void* pointer = self.pointer
        self.pointer = NULL
        anabranch_free(pointer, self.bytes, self.index, <void*>stream)

    @property
    def address(self):
        """The address; 0 for an empty block."""
        return <uintptr_t>self.pointer


def core_library():
    """Return the path of the shared library with the C functions for allocators."""
    return path_of_core().decode()
