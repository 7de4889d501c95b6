"""New arrays with the elements of others: copies, conversions, copies to other devices."""

from cython.operator cimport dereference as deref

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport CElementType, CStream, Elements, MemoryKind, OperationKind, Point, Touch, row_major
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._hazards.ordering cimport Submission, begin, commit_traced
from anabranch._memory.alloc cimport new_array
from anabranch._memory.array cimport Array
from anabranch._memory.copy cimport transfer
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._memory.slice cimport whole_of
from anabranch._stream.current cimport as_stream
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state

from anabranch._core.errors import DeviceError

cdef enum:
    complex64_code = 12


cdef Stream _own_stream(Array array, object stream):
    cdef Stream target = as_stream(stream, array._device)
    if target.device is not array._device:
        raise DeviceError(f"{array._described()} cannot be copied on {target!r}, a stream of another device")
    target.get()
    return target


cdef Array _made(Array like, ElementType dtype, DeviceBase device, Stream stream, MemoryKind kind):
    return new_array(
        device, row_major(like.layout.ndim, like.layout.shape, dtype.itemsize), dtype, stream, kind)


cdef MemoryKind _kind(Array array) noexcept:
    return MemoryKind.pinned if array.storage.get().kind() == MemoryKind.pinned else MemoryKind.device


cdef Array copied(Array array, object stream):
    cdef Stream target = _own_stream(array, stream)
    cdef Array source = whole_of(array)  # an allocator's code may close the array
    cdef Array made = _made(source, element_type(source._dtype), source._device, target, _kind(source))
    if made.layout.size() != 0:
        transfer(current_state(), made, 0, source, 0, made.layout.size(), target)
    return made


cdef Array contiguous_of(Array array, object stream):
    cdef Stream target = _own_stream(array, stream)
    return array if array.contiguous else copied(array, target)


cdef Array converted(Array array, ElementType dtype, object stream):
    if dtype.code == array.code:
        return copied(array, stream)
    if array.code >= complex64_code and 0 < dtype.code < complex64_code:
        raise TypeError(
            f"{array._dtype} to {dtype.dtype} would drop the imaginary parts; the real ones are every second element "
            "of view('float32') for complex64, of view('float64') for complex128")
    cdef Stream target = _own_stream(array, stream)
    cdef Array source = whole_of(array)  # as above
    cdef Array made = _made(source, dtype, source._device, target, _kind(source))
    if made.layout.size() != 0:
        _enqueue_conversion(current_state(), made, source, target)
    return made


cdef int _enqueue_conversion(TaskState state, Array dst, Array src, Stream stream) except -1:
    cdef CStream* target = stream.get()
    cdef Submission submission
    cdef Touch[2] touches
    cdef Elements to = dst.elements(0)
    cdef Elements of = src.elements(0)
    cdef Point point
    # In C++, raw comes before the codes.
    to.type = <CElementType>(dst.code + 1)
    of.type = <CElementType>(src.code + 1)
    touches[0] = src.touch(MemoryAccess.read)
    touches[1] = dst.touch(MemoryAccess.write)
    begin(&submission, state, target, touches, 2)
    point = target.backend().copy(deref(target), to, of, dst.layout.size())
    return commit_traced(
        &submission, state, target, point, OperationKind.copy, dst.layout.size() * dst.layout.itemsize)


cdef Array moved(Array array, object device, object stream):
    cdef DeviceBase there = as_device(device)
    cdef Array source = whole_of(array)
    cdef bint to_host = there.backend.capabilities().host_memory
    cdef Stream target = as_stream(stream, source._device if to_host else there)
    if target.device is not there and target.device is not source._device:
        raise DeviceError(
            f"{target!r} is of neither side of a copy from {source._device.alias} to {there.alias}")
    target.get()
    # A stream of another device cannot allocate here: then everybody may use the memory at once.
    cdef Array made = _made(
        source, element_type(source._dtype), there, target if target.device is there else None, MemoryKind.device)
    if made.layout.size() != 0:
        transfer(current_state(), made, 0, source, 0, made.layout.size(), target)
    return made
