from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from anabranch._core.core cimport ByteRange, Elements, Layout, Point, Ref, Site, Storage, Touch, Use, byte_t
from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport CStream, forked
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream


cdef class Array:
    cdef Ref[Storage] storage
    cdef DeviceBase _device
    cdef Layout layout
    cdef char* data             # address of the first element
    cdef object _dtype
    cdef int code               # code of the dtype
    cdef bint contiguous
    cdef bint _open             # false once closed
    cdef bint _read_only
    cdef object __weakref__

    # Raises ClosedError or ForkError.
    cdef inline int check(self) except -1:
        return 0 if self._open and not forked() else self.refuse()

    cdef int refuse(self) except -1
    # Closes the array whatever is pending. Calls of other threads that use it finish first, or raise ClosedError.
    cdef int let_go(self) except -1
    # The elements from `offset` on, in the flattened array.
    cdef inline Elements elements(self, int64_t offset) noexcept:
        cdef Elements elements
        elements.pointer = <byte_t*>self.data
        if self.contiguous:
            # One dimension describes contiguous elements fully.
            elements.layout.ndim = 1
            elements.layout.itemsize = self.layout.itemsize
            elements.layout.shape[0] = self.layout.size()
            elements.layout.strides[0] = self.layout.itemsize
        else:
            elements.layout = self.layout
        elements.offset = offset
        elements.home = self._device.backend
        return elements

    # The touch of an operation that accesses the elements.
    cdef inline Touch touch(self, MemoryAccess access) noexcept:
        cdef Touch touch
        cdef ByteRange bytes = self.bytes()
        touch.storage = self.storage.get()
        touch.access = access
        touch.overwrites = False
        touch.low = bytes.low
        touch.high = bytes.high
        touch.layout = &self.layout
        if self.contiguous:
            touch.layout = NULL
        touch.first = self.data - <char*>touch.storage.pointer()
        return touch

    # Records that the operation at a point accesses the elements; only the release of the memory waits for it.
    cdef inline int hold(self, CStream* stream, Point point, MemoryAccess access) except -1:
        cdef Site site
        self.storage.get().accesses().note(deref(stream), point, access, self.bytes(), NULL, site, True)
        return 0

    # The byte range of the elements in the storage.
    cdef inline ByteRange bytes(self) noexcept:
        cdef int64_t low = 0
        cdef int64_t high = 0
        cdef int64_t start = self.data - <char*>self.storage.get().pointer()
        cdef ByteRange range
        if self.contiguous:
            high = self.layout.size() * self.layout.itemsize
        else:
            self.layout.extent(low, high)
        range.low = start + low
        range.high = start + high
        return range

    # The elements of `copy`, a contiguous NumPy array of the same shape and dtype.
    cdef Elements elements_of(self, object copy) except *
    # A new stream, ordered after the uses; no other stream waits for them.
    cdef Ref[CStream] reader(self, const vector[Use]& uses) except *
    # Copies to host memory after all writes to the array, and waits for the copy.
    cdef int read_back(self, const Elements& dst, int64_t count) except -1
    # What `numpy` returns, but writable.
    cdef object fetch(self)
    # Blocks until the host may access the memory.
    cdef int synchronize(self, MemoryAccess access) except -1


# The array for an argument called `name`. Raises ClosedError, or TypeError with a hint.
cdef inline Array as_array(object array, str name):
    if type(array) is not Array:
        refuse_array(array, name)
    (<Array>array).check()
    return <Array>array

cdef int refuse_array(object array, str name) except -1
