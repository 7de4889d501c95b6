"""Elements that come from, or go to, what is no array of ours: assignments, and copies with NumPy arrays."""

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy

from anabranch._memory import copy, imports

from anabranch._core.core cimport CStream, MemoryKind, row_major, synchronize_point
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._hazards.ordering cimport observe_stream
from anabranch._memory.alloc cimport new_array
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.copies cimport converted
from anabranch._memory.copy cimport enqueue_value, transfer
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._memory.slice cimport whole_of
from anabranch._memory.traced_scalar cimport TracedScalar
from anabranch._memory.views cimport broadcast
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state

from anabranch._core.errors import DeviceError


cdef int assign(Array view, object value) except -1:
    if view._read_only:
        raise ValueError(f"{view._described()} is read-only memory")
    cdef Stream target = current_stream_of(current_state(), view._device.ordinal)
    if type(value) is Array:
        return _assign_array(view, <Array>value, target)
    if type(value) is TracedScalar or isinstance(value, (int, float, complex)):
        return enqueue_value(view, value, target)
    import numpy

    values = numpy.asarray(value)
    if values.ndim == 0:
        return enqueue_value(view, values, target)
    # As NumPy does, integers of a list may go to unsigned ones if they fit, those of an array need a cast.
    if isinstance(value, numpy.ndarray) or values.dtype.kind not in "iu" or view._dtype.kind not in "iu":
        _refuse_cast(values.dtype, view._dtype)
    if not isinstance(value, numpy.ndarray):
        values = numpy.asarray(value, view._dtype)  # refuses a Python number that does not fit
    return _assign_array(view, _snapshot(view, values), target)


cdef int _refuse_cast(object of, object to) except -1:
    import numpy

    if not numpy.can_cast(of, to, "same_kind"):
        raise TypeError(f"elements of dtype {of} are not assigned to elements of dtype {to}; convert them with astype")
    return 0


cdef int _assign_array(Array view, Array value, Stream target) except -1:
    value.check()
    target.get()
    if value.code != view.code:
        _refuse_cast(value._dtype, view._dtype)
    cdef Array source = broadcast(value, view.layout)  # before anything is enqueued
    cdef Stream before
    if view.layout.size() == 0:
        return 0
    if value.code != view.code:
        before = target if target.device is value._device else None
        before = as_stream(before, value._device)
        source = broadcast(converted(value, element_type(view._dtype), before), view.layout)
        if before is not target:
            target.wait_stream(before)
    return transfer(current_state(), view, 0, source, 0, view.layout.size(), target)


cdef Array _snapshot(Array view, object values):
    # In memory from which a copy to the view is asynchronous.
    import numpy

    cdef ElementType dtype = element_type(view._dtype)
    cdef bint on_host = view._device.backend.capabilities().host_memory
    cdef DeviceBase device = view._device if on_host else as_device("cpu:0")
    cdef MemoryKind kind = MemoryKind.device if on_host else MemoryKind.pinned
    contiguous = numpy.ascontiguousarray(values, dtype.dtype)
    cdef int64_t[16] shape
    cdef int d
    if values.ndim > 16:
        raise ValueError(f"an array has at most 16 dimensions, not {values.ndim}")
    for d in range(<int>values.ndim):
        shape[d] = values.shape[d]
    cdef Array made = new_array(device, row_major(<int>values.ndim, shape, dtype.itemsize), dtype, None, kind)
    cdef uintptr_t address = contiguous.__array_interface__["data"][0]
    cdef size_t size = contiguous.nbytes
    if size != 0:
        with nogil:
            memcpy(made.data, <const void*>address, size)
    return made


cdef int copy_with_numpy(list given) except -1:
    import numpy

    dst, src, stream, dst_offset, src_offset, count = given
    cdef bint to_numpy = isinstance(dst, numpy.ndarray)
    if to_numpy == isinstance(src, numpy.ndarray):
        # One of them is neither, or both are NumPy's.
        as_array(dst, "dst")
        as_array(src, "src")
    cdef Array array = whole_of(as_array(src, "src") if to_numpy else as_array(dst, "dst"))
    cdef Stream target = as_stream(stream, array._device)
    if target.device is not array._device:
        raise DeviceError(f"{target!r} is not of {array._device.alias}, the device of {array._described()}")
    cdef CStream* queue = target.get()
    if queue.capture() != NULL and to_numpy:
        queue.capture().refuse(
            b"a copy to a NumPy array cannot be captured: the host waits for it; make it after the graph's launch")
    if queue.capture() != NULL:
        queue.capture().refuse(
            b"a copy from a NumPy array cannot be captured: the host waits for it; write a[...] = data")
    wrapped = imports.asarray(dst if to_numpy else src)
    copy.copy(
        wrapped if to_numpy else array, array if to_numpy else wrapped, stream=target,
        dst_offset=dst_offset or 0, src_offset=src_offset or 0, count=count)
    synchronize_point(queue, target.now(queue))
    return observe_stream(queue)
