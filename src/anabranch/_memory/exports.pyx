"""Arrays for other libraries, without a copy: DLPack capsules and the CUDA array interface."""

from operator import index

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc
from libcpp.vector cimport vector

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport CStream, HazardMode, Ref, Site, Touch, Use, flush_point, forked, max_dimensions
from anabranch._hazards.ordering cimport Submission, TouchSpan, begin, commit, follow_use, uses_of
from anabranch._memory.array cimport Array
from anabranch._memory.dlpack cimport (
    DL_COPIED, DL_CPU, DL_CUDA, DL_READ_ONLY, DLManagedTensor, DLManagedTensorVersioned, DLTensor, delete_plain,
    delete_versioned)
from anabranch._memory.external_use cimport lend
from anabranch._memory.slice cimport whole_of
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state

cdef dict _code_of_kind = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
cdef size_t sizes_bytes = 2 * max_dimensions * sizeof(int64_t)  # of the shape and the strides, behind the tensor


def device_of(Array array not None):
    """Return DLPack's ``(type, number)`` of the array's device. Every CPU device is the same host to others."""
    if array._device.backend.capabilities().host_memory:
        return DL_CPU, 0
    return DL_CUDA, array._device.backend.capabilities().index


@cython.no_gc_clear
cdef class _Export:
    """Keeps an exported array alive; at its end, records that the consumer's stream used the array until then."""
    cdef Array array
    cdef Ref[CStream] consumer

    def __dealloc__(self):
        cdef CStream* stream = self.consumer.get()
        cdef Submission submission
        cdef Touch touch
        # Any Python thread. Holds the interpreter lock and no lock of the core; takes the storage's and the lane's.
        if stream != NULL and not forked():
            touch = self.array.touch(MemoryAccess.read_write)
            submission = Submission(deref(stream), HazardMode.automatic, TouchSpan(&touch, 1))
            submission.begin_in_order()
            submission.commit(stream.backend().newest(deref(stream)), Site())


cdef int _order_after_uses(Array array, CStream* stream) except -1:
    # The consumer may write, so its stream comes after readers as well, in every hazard mode: exporting promises it.
    cdef TaskState state = current_state()
    cdef Touch touch = array.touch(MemoryAccess.read_write)
    cdef vector[Use] uses = uses_of(touch)
    cdef Use use
    for use in uses:
        # The consumer does not see operations that a stream holds, so the driver must have them first.
        flush_point(stream, use.stream.get(), use.point)
        stream.backend().wait(deref(stream), deref(use.stream.get()), use.point)
        follow_use(deref(stream), use)
    # The consumer's use begins here.
    cdef Submission submission
    begin(&submission, state, stream, &touch, 1)
    commit(&submission, state, stream.backend().newest(deref(stream)))
    lend(deref(stream), deref(touch.storage), array.bytes())
    return 0


cdef Ref[CStream] _consumer(Array array, object stream) except *:
    # The stream that DLPack's consumer passes; null if it requests no order.
    cdef Ref[CStream] found
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream == 0 or stream < -1):
        raise BufferError(f"stream is None, -1, 1, 2 or a handle, not {stream!r}")
    if stream != -1:
        found = array._device.backend.find_stream(1 if stream is None else stream)
    return found


cdef int _describe(DLTensor* tensor, Array array, int64_t* sizes) except -1:
    cdef int d
    cdef bint host = array._device.backend.capabilities().host_memory
    tensor.data = array.data
    tensor.device.device_type = DL_CPU if host else DL_CUDA
    tensor.device.device_id = 0 if host else array._device.backend.capabilities().index
    tensor.ndim = array.layout.ndim
    tensor.dtype.code = _code_of_kind[array._dtype.kind]
    tensor.dtype.bits = 8 * array.layout.itemsize
    tensor.dtype.lanes = 1
    tensor.shape = sizes
    tensor.strides = sizes + array.layout.ndim
    tensor.byte_offset = 0
    for d in range(array.layout.ndim):
        sizes[d] = array.layout.shape[d]
        sizes[array.layout.ndim + d] = array.layout.strides[d] // array.layout.itemsize
    return 0


cdef void _discard_plain(object capsule) noexcept:
    cdef DLManagedTensor* tensor
    if PyCapsule_IsValid(capsule, "dltensor"):
        tensor = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        tensor.deleter(tensor)


cdef void _discard_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* tensor
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        tensor = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        tensor.deleter(tensor)


cdef tuple _pair(str name, object given):
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"{name} is a tuple of two ints, not {given!r}")
    return index(given[0]), index(given[1])


cdef int _refuse_export(Array array, object stream) except -1:
    cdef int d
    if stream is not None and array._device.backend.capabilities().host_memory:
        raise BufferError(f"stream is {stream!r}, but CPU memory is exported without one")
    for d in range(array.layout.ndim):
        if array.layout.strides[d] % array.layout.itemsize:
            raise BufferError("DLPack counts strides in elements; these are not whole ones")
    return 0


cdef object _versioned_capsule(_Export kept, bint read_only, bint copied):
    cdef DLManagedTensorVersioned* tensor = <DLManagedTensorVersioned*>calloc(
        1, sizeof(DLManagedTensorVersioned) + sizes_bytes)
    if tensor == NULL:
        raise MemoryError
    tensor.version.major = 1
    tensor.version.minor = 0
    tensor.flags = (DL_READ_ONLY if read_only else 0) | (DL_COPIED if copied else 0)
    tensor.deleter = delete_versioned
    tensor.manager_ctx = <void*>kept
    Py_INCREF(kept)
    _describe(&tensor.dl_tensor, kept.array, <int64_t*>(tensor + 1))
    return PyCapsule_New(tensor, "dltensor_versioned", <void (*)(object) noexcept>_discard_versioned)


cdef object _plain_capsule(_Export kept):
    cdef DLManagedTensor* tensor = <DLManagedTensor*>calloc(1, sizeof(DLManagedTensor) + sizes_bytes)
    if tensor == NULL:
        raise MemoryError
    tensor.deleter = delete_plain
    tensor.manager_ctx = <void*>kept
    Py_INCREF(kept)
    _describe(&tensor.dl_tensor, kept.array, <int64_t*>(tensor + 1))
    return PyCapsule_New(tensor, "dltensor", <void (*)(object) noexcept>_discard_plain)


def export(Array array not None, stream, max_version, dl_device, copy):
    """Return a DLPack capsule; implements `Array.__dlpack__`."""
    cdef int major = 0 if max_version is None else _pair("max_version", max_version)[0]
    cdef tuple target = device_of(array) if dl_device is None else _pair("dl_device", dl_device)
    cdef object home = array._device
    array = whole_of(array)  # another thread may close it during the wait
    _refuse_export(array, stream)
    if target != device_of(array):
        if target != (DL_CPU, 0) or copy is False:
            raise BufferError(
                f"cannot export memory of {array._device.alias} to DLPack device {target}, unless as a copy to the CPU")
        copy, home, stream = True, "cpu:0", None
    cdef bint read_only = array._read_only
    if read_only and not copy and major < 1:
        raise BufferError("read-only memory can only be exported to a consumer of DLPack 1.0 or later")
    array.storage.get().share()
    if copy:
        from anabranch._memory.factories import array as make

        array = make(array.numpy(), device=home)
        read_only = False
    cdef _Export kept = _Export.__new__(_Export)
    kept.array = array
    if array._device.backend.capabilities().host_memory:
        # The consumer may write, so it comes after readers as well.
        array._view(not read_only)
    else:
        kept.consumer = _consumer(array, stream)
        if kept.consumer.get() != NULL:
            _order_after_uses(array, kept.consumer.get())
    return _versioned_capsule(kept, read_only, bool(copy)) if major >= 1 else _plain_capsule(kept)


def cuda_interface(Array array not None):
    """Return an array's ``__cuda_array_interface__``; the current stream is ordered after its uses."""
    if array._device.backend.capabilities().host_memory:
        raise AttributeError(f"{array._described()} is CPU memory, which has no __cuda_array_interface__")
    cdef Stream stream = current_stream_of(current_state(), array._device.ordinal)
    array = whole_of(array)  # another thread may close it during the wait
    array.storage.get().share()
    _order_after_uses(array, stream.get())
    return {
        "version": 3,
        "shape": array.shape,
        "strides": None if array.contiguous else array.strides,
        "typestr": array._dtype.str,
        "data": (array.ptr, array.read_only),
        "stream": stream.handle,
    }
