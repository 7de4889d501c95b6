"""Arrays over memory of other libraries, without a copy: DLPack and the array interfaces."""

import operator

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName
from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t
from libcpp.memory cimport unique_ptr

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport Activation, CStream, HazardMode, Layout, Ref, Touch, max_dimensions, owner_of
from anabranch._device.device cimport DeviceBase, as_device, device_of as device_of_backend
from anabranch._hazards.ordering cimport Submission, TouchSpan, commit, wait_for_stream
from anabranch._memory.alloc cimport adopt_array, layout_of_others
from anabranch._memory.array cimport Array
from anabranch._memory.dlpack cimport (
    DL_BFLOAT, DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED, DL_READ_ONLY, DLDataType, DLManagedTensor,
    DLManagedTensorVersioned, DLTensor)
from anabranch._memory.dtype cimport as_dtype
from anabranch._memory.external_use cimport lend
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state, current_task

cdef dict _kind_of_code = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


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
    # Whether the memory is of a library without mutable arrays, whose capsule cannot say so.
    cdef bint immutable

    cdef DLTensor* tensor(self) noexcept:
        return &self.versioned.dl_tensor if self.versioned != NULL else &self.plain.dl_tensor

    cdef bint read_only(self) noexcept:
        if self.versioned == NULL:
            return self.immutable
        return self.versioned.flags & DL_READ_ONLY

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


cdef _Import _take(object obj, object capsule):
    cdef _Import owner = _Import.__new__(_Import)
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        if owner.versioned.version.major != 1:
            raise BufferError(f"version {owner.versioned.version.major} of DLPack is not known here")
    elif PyCapsule_IsValid(capsule, "dltensor"):
        owner.plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        owner.immutable = type(obj).__module__.startswith(("jax", "jaxlib"))
        PyCapsule_SetName(capsule, "used_dltensor")
    else:
        raise TypeError(f"{type(obj).__name__}.__dlpack__() returned no DLPack capsule")
    return owner


cdef object _dtype_of(DLDataType dtype):
    if dtype.code == DL_BFLOAT:
        raise TypeError(
            "bfloat16 is none that arrays hold: to move such a tensor, hand over tensor.view(torch.int16); to compute "
            "with it, tensor.float()")
    letter = _kind_of_code.get(dtype.code)
    if letter is None or dtype.lanes != 1 or dtype.bits % 8:
        raise TypeError(f"DLPack dtype (code {dtype.code}, {dtype.bits} bits) is none that arrays hold")
    return as_dtype(f"{letter}{dtype.bits // 8}")


cdef Layout _layout_of(DLTensor* tensor, object itemsize) except *:
    if not 0 <= tensor.ndim <= max_dimensions:
        raise ValueError(f"an array has 0 to {max_dimensions} dimensions, not {tensor.ndim}")
    if tensor.shape == NULL and tensor.ndim != 0:
        raise ValueError(f"no sizes are given for {tensor.ndim} dimensions")
    strides = None
    if tensor.strides != NULL:
        strides = tuple([_in_bytes(tensor.strides[d], itemsize) for d in range(tensor.ndim)])
    return layout_of_others(tuple([tensor.shape[d] for d in range(tensor.ndim)]), strides, itemsize)


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
    place = obj.__dlpack_device__()
    try:
        kind, number = map(operator.index, place)
    except (TypeError, ValueError):
        raise TypeError(
            f"__dlpack_device__() returns a pair of ints, a device's type and its number, not {place!r}") from None
    if kind not in (DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED):
        raise BufferError(f"DLPack device type {int(kind)} cannot be used here; there is no such device")
    cdef bint on_gpu = kind in (DL_CUDA, DL_CUDA_MANAGED)
    cdef DeviceBase device = as_device(f"cuda:{int(number)}" if on_gpu else "cpu:0")
    cdef Stream reader = current_stream_of(current_state(), device.ordinal) if on_gpu else None
    cdef _Import owner = _take(obj, _capsule_of(obj, reader))
    cdef DLTensor* tensor = owner.tensor()
    found = tensor.device.device_type, tensor.device.device_id
    if (found[0] in (DL_CUDA, DL_CUDA_MANAGED)) != on_gpu or on_gpu and found[1] != number:
        raise BufferError(f"__dlpack_device__() says {(int(kind), int(number))}, but the memory is of {found}")
    dtype = _dtype_of(tensor.dtype)
    return _adopt(
        device, reader, _layout_of(tensor, dtype.itemsize), dtype, <char*>tensor.data + tensor.byte_offset,
        owner.read_only(), owner)


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
