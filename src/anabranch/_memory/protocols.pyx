"""Zero-copy exchange of arrays with other libraries: DLPack and the array interfaces."""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    Activation, CStream, HazardMode, Layout, Ref, Site, Touch, Use, forked, max_dimensions, owner_of, flush_point)
from anabranch._device.device cimport DeviceBase, as_device, device_of as device_of_backend
from anabranch._hazards.ordering cimport (
    Submission, TouchSpan, begin, commit, follow_use, uses_of, wait_for_stream)
from anabranch._memory.alloc cimport adopt_array, layout_of_others
from anabranch._memory.array cimport Array
from anabranch._memory.dlpack cimport (
    DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED, DL_READ_ONLY, DLDataType, DLManagedTensor, DLManagedTensorVersioned,
    DLTensor, delete_plain, delete_versioned)
from anabranch._memory.dtype cimport as_dtype
from anabranch._memory.external_use cimport lend
from anabranch._memory.slice cimport whole_of
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state, current_task

cdef dict _code_of_kind = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
cdef dict _kind_of_code = {code: kind for kind, code in _code_of_kind.items()}


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


cdef void _describe(DLTensor* tensor, Array array, int64_t* sizes) noexcept:
    cdef int d
    cdef bint host = array._device.backend.capabilities().host_memory
    tensor.data = array.data
    tensor.device.device_type = DL_CPU if host else DL_CUDA
    tensor.device.device_id = 0 if host else array._device.backend.capabilities().index
    tensor.ndim = array.layout.ndim
    tensor.dtype.lanes = 1
    tensor.shape = sizes
    tensor.strides = sizes + array.layout.ndim
    tensor.byte_offset = 0
    for d in range(array.layout.ndim):
        sizes[d] = array.layout.shape[d]
        sizes[array.layout.ndim + d] = array.layout.strides[d] // array.layout.itemsize


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


def export(Array array not None, stream, max_version, dl_device, copy):
    """Return a DLPack capsule; implements `Array.__dlpack__`."""
    cdef DLManagedTensor* plain
    cdef DLManagedTensorVersioned* versioned
    cdef int d
    cdef int major = 0
    if max_version is not None:
        major, _ = max_version
    array = whole_of(array)  # another thread may close it during the wait
    cdef bint host = array._device.backend.capabilities().host_memory
    if host and stream is not None:
        raise BufferError(f"stream is {stream!r}, but CPU memory is exported without one")
    if dl_device is not None and tuple(dl_device) != device_of(array):
        raise BufferError(f"cannot export memory of {array._device.alias} to DLPack device {tuple(dl_device)}")
    for d in range(array.layout.ndim):
        if array.layout.strides[d] % array.layout.itemsize:
            raise BufferError("DLPack counts strides in elements; these are not whole ones")
    cdef bint read_only = array._read_only
    array.storage.get().share()
    if copy:
        from anabranch._memory.factories import array as make

        array = make(array.numpy(), device=array._device)
        read_only = False
    cdef _Export kept = _Export.__new__(_Export)
    kept.array = array
    if host:
        # The consumer may write, so it comes after readers as well.
        array._view(not read_only)
    else:
        kept.consumer = _consumer(array, stream)
        if kept.consumer.get() != NULL:
            _order_after_uses(array, kept.consumer.get())
    cdef DLDataType dtype
    dtype.code = _code_of_kind[array._dtype.kind]
    dtype.bits = 8 * array.layout.itemsize
    dtype.lanes = 1
    cdef size_t sizes = 2 * max_dimensions * sizeof(int64_t)
    if major >= 1:
        versioned = <DLManagedTensorVersioned*>calloc(1, sizeof(DLManagedTensorVersioned) + sizes)
        if versioned == NULL:
            raise MemoryError
        versioned.version.major = 1
        versioned.version.minor = 0
        versioned.flags = (DL_READ_ONLY if read_only else 0) | (2 if copy else 0)
        versioned.deleter = delete_versioned
        versioned.manager_ctx = <void*>kept
        Py_INCREF(kept)
        _describe(&versioned.dl_tensor, kept.array, <int64_t*>(versioned + 1))
        versioned.dl_tensor.dtype = dtype
        return PyCapsule_New(versioned, "dltensor_versioned", <void (*)(object) noexcept>_discard_versioned)
    if read_only:
        raise BufferError("read-only memory can only be exported to a consumer of DLPack 1.0 or later")
    plain = <DLManagedTensor*>calloc(1, sizeof(DLManagedTensor) + sizes)
    if plain == NULL:
        raise MemoryError
    plain.deleter = delete_plain
    plain.manager_ctx = <void*>kept
    Py_INCREF(kept)
    _describe(&plain.dl_tensor, kept.array, <int64_t*>(plain + 1))
    plain.dl_tensor.dtype = dtype
    return PyCapsule_New(plain, "dltensor", <void (*)(object) noexcept>_discard_plain)


cdef object _capsule_of(object obj, Stream reader):
    cdef Stream between = reader
    cdef unique_ptr[Activation] _activation
    arguments = {}
    if reader is not None:
        # The producer orders its work before the reader's stream. Not every producer supports the per-thread stream,
        # and some, such as PyTorch, export memory of the current GPU only.
        if reader.per_thread:
            between = Stream(reader.device, name="dlpack")
        _activation = reader.device.backend.activate()
        arguments["stream"] = between.handle
    try:
        capsule = obj.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        # The producer predates version 1.0.
        capsule = obj.__dlpack__(**arguments)
    if between is not reader:
        reader.wait_stream(between)
    return capsule


cdef class _Import:
    """Owns an imported DLPack tensor."""
    cdef DLManagedTensor* plain
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        # Any Python thread. Holds the interpreter lock and no lock of the core: the deleter is another library's.
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef object _in_bytes(object stride, object itemsize):
    # CuPy up to 14.2 divides the bytes of a negative stride as an unsigned number (cupy/cupy#10172).
    reach = stride * itemsize
    return reach - 2**64 if 2**63 <= reach < 2**64 else reach


def from_dlpack(obj):
    """Return an array over the memory of an object that speaks DLPack, without a copy.

    The object is kept alive until the last use of the array is over. Host memory becomes ``cpu:0``'s, but what is an
    array's already stays its device's. Uses of memory that several arrays share bytes of are in order, whoever made
    them.

    Parameters
    ----------
    obj : object with ``__dlpack__`` and ``__dlpack_device__``

    Raises
    ------
    TypeError
        If the object does not speak DLPack, or its dtype is none that arrays hold.
    BufferError
        If the memory is of a device that cannot be used here, or of another one than ``__dlpack_device__`` says.
    ValueError
        For memory that is not aligned for its dtype, at address 0, or described so that it reaches beyond addresses.
    """
    if isinstance(obj, Array):
        return obj[...]
    if not (hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__")):
        raise TypeError(f"{type(obj).__name__} does not speak DLPack: it has no __dlpack__ and __dlpack_device__")
    kind, number = obj.__dlpack_device__()
    if kind not in (DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED):
        raise BufferError(f"DLPack device type {int(kind)} cannot be used here; there is no such device")
    cdef bint on_gpu = kind in (DL_CUDA, DL_CUDA_MANAGED)
    cdef DeviceBase device = as_device(f"cuda:{int(number)}" if on_gpu else "cpu:0")
    cdef Stream reader = current_stream_of(current_state(), device.ordinal) if on_gpu else None
    capsule = _capsule_of(obj, reader)
    cdef _Import owner = _Import.__new__(_Import)
    cdef DLTensor* tensor
    cdef bint read_only = False
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        if owner.versioned.version.major != 1:
            raise BufferError(f"version {owner.versioned.version.major} of DLPack is not known here")
        tensor = &owner.versioned.dl_tensor
        read_only = owner.versioned.flags & DL_READ_ONLY
    elif PyCapsule_IsValid(capsule, "dltensor"):
        owner.plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        PyCapsule_SetName(capsule, "used_dltensor")
        tensor = &owner.plain.dl_tensor
    else:
        raise TypeError(f"{type(obj).__name__}.__dlpack__() returned no DLPack capsule")
    found = tensor.device.device_type, tensor.device.device_id
    if (found[0] in (DL_CUDA, DL_CUDA_MANAGED)) != on_gpu or on_gpu and found[1] != number:
        raise BufferError(f"__dlpack_device__() says {(int(kind), int(number))}, but the memory is of {found}")
    letter = _kind_of_code.get(tensor.dtype.code)
    if letter is None or tensor.dtype.lanes != 1 or tensor.dtype.bits % 8:
        raise TypeError(f"DLPack dtype (code {tensor.dtype.code}, {tensor.dtype.bits} bits) is none that arrays hold")
    dtype = as_dtype(f"{letter}{tensor.dtype.bits // 8}")
    if not 0 <= tensor.ndim <= max_dimensions:
        raise ValueError(f"an array has 0 to {max_dimensions} dimensions, not {tensor.ndim}")
    if tensor.shape == NULL and tensor.ndim != 0:
        raise ValueError(f"no sizes are given for {tensor.ndim} dimensions")
    strides = None
    if tensor.strides != NULL:
        strides = tuple([_in_bytes(tensor.strides[d], dtype.itemsize) for d in range(tensor.ndim)])
    cdef Layout layout = layout_of_others(
        tuple([tensor.shape[d] for d in range(tensor.ndim)]), strides, dtype.itemsize)
    return _adopt(device, reader, layout, dtype, <char*>tensor.data + tensor.byte_offset, read_only, owner)


cdef Array _adopt(
        DeviceBase device, Stream reader, Layout layout, object dtype, char* data, bint read_only, object owner,
        char* whole=NULL, size_t bytes=0):
    cdef Array array = adopt_array(device, layout, dtype, data, read_only, owner, whole, bytes)
    if reader is None:
        return array
    # The producer's work comes before this point, and therefore before every stream that waits for it.
    cdef CStream* stream = reader.get()
    cdef Touch touch = array.touch(MemoryAccess.write)
    cdef TaskState state = current_state()
    cdef Submission submission = Submission(deref(stream), <HazardMode>state.mode, TouchSpan(&touch, 1))
    submission.begin_in_order()
    commit(&submission, state, stream.backend().record(deref(stream)))
    lend(deref(stream), deref(touch.storage), array.bytes())
    return array


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


cdef Array _from_cuda_interface(object obj, dict interface):
    cdef DeviceBase gpu = as_device(None)
    if gpu.backend.capabilities().host_memory:
        gpu = as_device("cuda:0")
    for key in ("data", "shape", "typestr"):
        if key not in interface:
            raise ValueError(f"{type(obj).__name__}.__cuda_array_interface__ lacks {key!r}")
    data, read_only = interface["data"]
    cdef uintptr_t address = data or 0
    # Pinned host memory also has this interface. Its stream then belongs to the current GPU.
    cdef DeviceBase device = gpu if address == 0 else device_of_backend(&owner_of(<void*>address))
    if not device.backend.capabilities().host_memory:
        gpu = device
    cdef Stream reader = current_stream_of(current_state(), device.ordinal)
    cdef CStream* stream = reader.get()
    cdef Ref[CStream] producer
    if interface.get("mask") is not None:
        raise TypeError(f"{type(obj).__name__} is masked, which arrays cannot be")
    handle = interface.get("stream")
    if handle is not None:
        if not 0 < handle < 2**64:
            raise ValueError(f"no stream of {gpu.alias} has the handle {handle}")
        producer = gpu.backend.find_stream(handle)
        if producer.get() != stream:
            wait_for_stream(deref(stream), deref(producer.get()), deref(current_task()))
    dtype = as_dtype(interface["typestr"])
    strides = interface.get("strides")
    strides = None if strides is None else tuple(strides)
    cdef Layout layout = layout_of_others(tuple(interface["shape"]), strides, dtype.itemsize)
    return _adopt(device, reader, layout, dtype, <char*>address, bool(read_only), obj)


def asarray(obj):
    """Return an array over the memory of an object, without a copy.

    Takes what owns memory and speaks DLPack or the array interface: NumPy arrays, PyTorch and JAX tensors on
    the CPU, and the like. Of an `Array` a view is returned. The object is kept alive until the last use of
    the array is over. Host memory becomes ``cpu:0``'s, but what is an array's already stays its device's. Uses of
    memory that several arrays share bytes of are in order, whoever made them.

    Raises
    ------
    TypeError
        For lists, scalars and other objects that own no such memory, masked ones, or a dtype that arrays do not hold.
    ValueError
        For memory that is not aligned for its dtype, at address 0, or described so that it reaches beyond addresses.
    """
    if isinstance(obj, Array):
        return obj[...]
    import numpy

    if isinstance(obj, numpy.ma.MaskedArray):
        raise TypeError(f"{type(obj).__name__} is masked, which arrays cannot be")
    if isinstance(obj, (numpy.generic, int, float, complex, bool, list, tuple, str, bytes)):
        raise TypeError(f"{type(obj).__name__} owns no memory to share; copy it with anabranch.array")
    if not hasattr(obj, "__array_interface__"):
        if hasattr(obj, "__dlpack__"):
            return from_dlpack(obj)
        if hasattr(obj, "__cuda_array_interface__"):
            return _from_cuda_interface(obj, obj.__cuda_array_interface__)
        raise TypeError(
            f"{type(obj).__name__} speaks neither DLPack nor an array interface; copy it with anabranch.array")
    view = numpy.asarray(obj)
    if not isinstance(view, numpy.ndarray) or not view.dtype.isnative:
        raise TypeError(f"arrays cannot hold dtype {view.dtype}, which is not in this machine's byte order")
    dtype = as_dtype(view.dtype)
    cdef Layout layout = layout_of_others(view.shape, view.strides, dtype.itemsize)
    cdef uintptr_t address = view.__array_interface__["data"][0]
    # Overlapping views share the root's storage, so that their accesses are compared.
    root = view
    while isinstance(root.base, numpy.ndarray):
        root = root.base
    cdef uintptr_t first, last
    bounds = numpy.lib.array_utils.byte_bounds(root)
    first, last = bounds if 0 <= bounds[0] and bounds[1] < 2**64 else (0, 0)  # unknown: no memory has these addresses
    return _adopt(
        as_device("cpu:0"), None, layout, dtype, <char*>address, not view.flags.writeable, view, <char*>first,
        last - first if root.size else 0)
