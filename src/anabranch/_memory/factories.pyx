"""Functions that create arrays."""

from libc.stdint cimport int64_t, uintptr_t

from anabranch._core cimport core
from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    CStream, Elements, Layout, MemoryKind, Ref, StreamOptions, byte_t, copy_elements, forked)
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._memory.alloc cimport layout_of, new_array
from anabranch._memory.array cimport Array
from anabranch._memory.copy cimport enqueue_fill, enqueue_value, transfer
from anabranch._memory.dtype cimport ElementType, Item, as_dtype, element_type, encode
from anabranch._memory.slice cimport whole_of
from anabranch._memory.staging cimport upload
from anabranch._memory.traced_scalar cimport TracedScalar
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state


cdef Stream _stream_for(object device, object stream):
    # The stream on which an array is created; the array's device is the stream's.
    cdef Stream chosen
    if forked():
        core.check_fork()
    if stream is None:
        return current_stream_of(current_state(), -1 if device is None else as_device(device).ordinal)
    chosen = as_stream(stream, None)
    if device is not None and as_device(device) is not chosen.device:
        raise ValueError(f"{chosen!r} is not a stream of the device {as_device(device).alias}")
    return chosen


cdef MemoryKind _kind(DeviceBase device, bint pinned) except *:
    if not pinned:
        return MemoryKind.device
    if not device.backend.capabilities().host_memory:
        raise ValueError(f"pinned memory is CPU memory; {device.alias} has none")
    return MemoryKind.pinned


cdef ElementType _type_of(object shape, object dtype, str function):
    if type(shape) is int and type(dtype) is int:
        raise TypeError(f"the dtype is {dtype}, an int; a shape is one argument: ab.{function}(({shape}, {dtype}))")
    return element_type(dtype)


cdef Array _make(object shape, ElementType dtype, Stream stream, bint pinned):
    cdef Layout layout = layout_of(shape, dtype.itemsize)
    return new_array(stream.device, layout, dtype, stream, _kind(stream.device, pinned))


def empty(shape, dtype="float32", *, device=None, stream=None, bint pinned=False):
    """Return a new array whose elements are not set.

    Asynchronous: usable by work that the stream does from now on, and by other streams that wait for it.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype-like
        Booleans, integers, floats from float16, complex.
    device : Device or str, optional
        None: that of the stream, else the current one.
    stream : Stream, optional
        None: the current stream of the device.
    pinned : bool
        For a CPU array: memory that every device can reach, for asynchronous copies.

    Raises
    ------
    ValueError
        For a negative or overflowing size, pinned memory of another device than a CPU, or a stream of another device.
    TypeError
        For a shape that is not of ints, or a dtype that arrays cannot hold.
    DeviceError
        For a device that does not exist.
    ClosedError
        If the stream is closed.
    OutOfMemoryError
        If the device has too little memory; it derives from MemoryError too.
    """
    return _make(shape, _type_of(shape, dtype, "empty"), _stream_for(device, stream), pinned)


def zeros(shape, dtype="float32", *, device=None, stream=None, bint pinned=False):
    """Return a new array of zeros. Asynchronous on the stream; parameters as of `empty`.

    Raises
    ------
    ValueError, TypeError, DeviceError, ClosedError, OutOfMemoryError
        As of `empty`.
    """
    cdef Stream target = _stream_for(device, stream)
    cdef Array array = _make(shape, _type_of(shape, dtype, "zeros"), target, pinned)
    cdef Item item
    item.bytes[0] = item.bytes[1] = 0
    enqueue_fill(array, &item, target)
    return array


def ones(shape, dtype="float32", *, device=None, stream=None, bint pinned=False):
    """Return a new array of ones. Asynchronous on the stream; parameters as of `empty`.

    Raises
    ------
    ValueError, TypeError, DeviceError, ClosedError, OutOfMemoryError
        As of `empty`.
    """
    return full(shape, 1, _type_of(shape, dtype, "ones").dtype, device=device, stream=stream, pinned=pinned)


def full(shape, value, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array with every element set to a value. Asynchronous on the stream.

    The other parameters, and the errors, are those of `empty`.

    Parameters
    ----------
    value : scalar
        Converted as NumPy does.
    dtype : dtype-like, optional
        None: what NumPy makes of the value.

    Raises
    ------
    ValueError
        For a value that does not fit the dtype, too.
    TypeError
        For a value that is no number, too.
    """
    cdef Stream target = _stream_for(device, stream)
    if dtype is None:
        import numpy

        if type(value) is TracedScalar:
            value = (<TracedScalar>value).concretize()  # the dtype depends on the value
        dtype = numpy.asarray(value).dtype
    cdef ElementType type_ = element_type(dtype)
    cdef Item item
    encode((<TracedScalar>value).value if type(value) is TracedScalar else value, type_, &item)
    cdef Array array = _make(shape, type_, target, pinned)
    enqueue_value(array, value, target)
    return array


cdef tuple _likeness(object prototype, object dtype, object device, object stream):
    # What an array like another is made with.
    if type(prototype) is Array:
        if device is None and stream is None:
            device = prototype.device
    elif not hasattr(prototype, "__array_interface__"):
        raise TypeError(f"the prototype is an Array or a NumPy array, not {type(prototype).__name__}")
    return prototype.shape, prototype.dtype if dtype is None else dtype, device


def empty_like(prototype, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array of the shape of another, whose elements are not set.

    In row-major order, however the other's elements lie. Asynchronous on the stream; the other parameters, and the
    errors, are those of `empty`.

    Parameters
    ----------
    prototype : Array or numpy.ndarray
    dtype : dtype-like, optional
        None: that of the prototype.
    device : Device or str, optional
        None: that of the stream, else of the prototype if it is an `Array`, else the current one.

    Raises
    ------
    TypeError
        For another prototype, too.
    """
    shape, dtype, device = _likeness(prototype, dtype, device, stream)
    return empty(shape, dtype, device=device, stream=stream, pinned=pinned)


def zeros_like(prototype, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array of zeros, of the shape of another. Parameters as of `empty_like`.

    Raises
    ------
    ValueError, TypeError, DeviceError, ClosedError, OutOfMemoryError
        As of `empty_like`.
    """
    shape, dtype, device = _likeness(prototype, dtype, device, stream)
    return zeros(shape, dtype, device=device, stream=stream, pinned=pinned)


def full_like(prototype, value, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array of the shape of another, with every element set to a value.

    Asynchronous on the stream; the value is as of `full`, the other parameters as of `empty_like`.

    Raises
    ------
    ValueError, TypeError, DeviceError, ClosedError, OutOfMemoryError
        As of `full` and `empty_like`.
    """
    shape, dtype, device = _likeness(prototype, dtype, device, stream)
    return full(shape, value, dtype, device=device, stream=stream, pinned=pinned)


def array(data, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array with a copy of the data.

    Returns when the copy is done, unless the data is an array in pinned memory: then it is asynchronous on the stream.
    The other parameters, and the errors, are those of `empty`.

    Parameters
    ----------
    data : array-like
        Whatever `numpy.asarray` takes, or an `Array`.
    dtype : dtype-like, optional
        None: that of the data.

    Raises
    ------
    TypeError
        For data that arrays cannot hold, such as text, too.
    ValueError
        For nested sequences of several lengths, too.
    OverflowError
        For a Python number that does not fit the dtype.
    KernelError
        If work that the data, an `Array`, depends on failed.
    CaptureError
        In a capture, unless the data is an array in pinned memory: the host would copy it.
    """
    import numpy

    cdef Stream target = _stream_for(device, stream)
    cdef Array made
    cdef Array source
    cdef Elements dst
    cdef Elements src
    cdef Layout layout
    cdef int64_t count
    cdef uintptr_t address
    cdef Ref[CStream] worker
    if not (isinstance(data, Array) and (<Array>data).pinned) and target.get().capture() != NULL:
        target.get().capture().refuse(b"array() from memory that is not pinned cannot be captured: the host copies it")
    if isinstance(data, Array) and (dtype is None or as_dtype(dtype) == (<Array>data)._dtype):
        source = whole_of(data)  # an allocator's code may close the array
        made = _make(source.shape, element_type(source._dtype), target, pinned)
        if source.layout.size() != 0:
            transfer(current_state(), made, 0, source, 0, source.layout.size(), target)
        if source.storage.get().kind() != MemoryKind.pinned:
            made.synchronize(MemoryAccess.read)
        return made
    if isinstance(data, Array):
        data = (<Array>data).fetch()
    target.get()
    values = numpy.asarray(data)
    if values.dtype.hasobject or values.dtype.kind in "USmMV":
        as_dtype(values.dtype)
    cdef ElementType resolved = element_type(values.dtype.newbyteorder("=") if dtype is None else dtype)
    if dtype is not None and not isinstance(data, (numpy.ndarray, numpy.generic)):
        values = numpy.asarray(data, resolved.dtype)  # refuses a Python number that does not fit
    values = numpy.ascontiguousarray(values, resolved.dtype).reshape(values.shape)
    # No stream: the host writes below, so no earlier work may still use the memory.
    layout = layout_of(values.shape, resolved.itemsize)
    made = new_array(target.device, layout, resolved, None, _kind(target.device, pinned))
    address = values.__array_interface__["data"][0]
    dst = made.elements(0)
    src = made.elements(0)
    src.pointer = <byte_t*>address
    src.home = NULL
    count = made.layout.size()
    if not target.device.backend.capabilities().host_memory:
        worker = target.device.backend.create_stream(StreamOptions())
        upload(worker.get(), dst, src, count)
        return made
    with nogil:
        copy_elements(dst, src, count)
    return made
