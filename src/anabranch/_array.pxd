from libc.stdint cimport int64_t

from anabranch._core cimport ByteRange, Elements, Layout, Point, Ref, Storage
from anabranch._core cimport Access as MemoryAccess
from anabranch._core cimport CStream
from anabranch._device cimport DeviceBase
from anabranch._stream cimport Stream


cdef class Array:
    cdef Ref[Storage] storage
    cdef DeviceBase _device
    cdef Layout layout
    cdef char* data             # the first element
    cdef object _dtype
    cdef int code               # of the dtype
    cdef bint contiguous
    cdef object __weakref__

    cdef int check(self) except -1
    # Where `offset` elements into the flattened array are.
    cdef Elements elements(self, int64_t offset) noexcept
    cdef int note(self, CStream* stream, Point point, MemoryAccess access) except -1
    # Where in the storage the elements lie.
    cdef ByteRange bytes(self) noexcept
    # Copies to host memory, after what writes to the array, and returns when that is done.
    cdef int read_back(self, const Elements& dst, int64_t count) except -1
    # Blocks until the host may access the memory.
    cdef int synchronize(self, MemoryAccess access) except -1


# The array for an argument called `name`. Raises TypeError with a hint, ClosedError.
cdef Array as_array(object array, str name)
