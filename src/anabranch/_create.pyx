"""Functions that make arrays."""

from libc.stdint cimport int64_t, uintptr_t

from anabranch cimport _core
from anabranch._array cimport Array, layout_of, new_array
from anabranch._core cimport Access as MemoryAccess
from anabranch._core cimport CStream, Elements, MemoryKind, Ref, StreamOptions, byte_t, copy_elements, forked
from anabranch._copy cimport enqueue_fill, transfer
from anabranch._device cimport DeviceBase, as_device
from anabranch._dtype cimport as_dtype
from anabranch._current cimport as_stream, current_stream_of
from anabranch._staging cimport upload
from anabranch._stream cimport Stream


cdef Stream _stream_for(object device, object stream):
    # The stream on which an array is made; its device is the array's.
    cdef Stream chosen
    if forked():
        _core.check_fork()
    if stream is None:
        return current_stream_of(-1 if device is None else as_device(device).ordinal)
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


cdef Array _make(object shape, object dtype, object device, object stream, bint pinned):
    cdef Stream target = _stream_for(device, stream)
    resolved = as_dtype(dtype)
    return new_array(target.device, layout_of(shape, resolved), resolved, target, _kind(target.device, pinned))


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
        For a dtype that arrays cannot hold.
    OutOfMemoryError
        If the device has too little memory; it derives from MemoryError too.
    """
    return _make(shape, dtype, device, stream, pinned)


def zeros(shape, dtype="float32", *, device=None, stream=None, bint pinned=False):
    """Return a new array of zeros. Asynchronous on the stream; parameters and errors as of `empty`."""
    cdef Stream target = _stream_for(device, stream)
    cdef Array array = _make(shape, dtype, None, target, pinned)
    cdef int64_t[2] value = [0, 0]
    enqueue_fill(array, value, target)
    return array


def ones(shape, dtype="float32", *, device=None, stream=None, bint pinned=False):
    """Return a new array of ones. Asynchronous on the stream; parameters and errors as of `empty`."""
    return full(shape, 1, dtype, device=device, stream=stream, pinned=pinned)


def full(shape, value, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array with every element set to a value. Asynchronous on the stream.

    Parameters
    ----------
    value : scalar
        Converted as NumPy does.
    dtype : dtype-like, optional
        None: what NumPy makes of the value.

    Other parameters and errors are those of `empty`; a value that does not fit the dtype is a ValueError.
    """
    import numpy

    cdef Stream target = _stream_for(device, stream)
    resolved = as_dtype(numpy.asarray(value).dtype if dtype is None else dtype)
    cdef bytes item = element_bytes(value, resolved)
    cdef Array array = _make(shape, resolved, None, target, pinned)
    enqueue_fill(array, <const char*>item, target)
    return array


def element_bytes(value, dtype):
    """Return the bytes of one element with that value."""
    import numpy

    if isinstance(value, (int, float, complex)):
        try:
            return numpy.asarray(value, dtype).tobytes()
        except OverflowError as error:
            raise ValueError(f"{value!r} does not fit dtype {dtype}: {error}") from None
    item = numpy.asarray(value)
    if item.ndim != 0:
        raise ValueError(f"the value must be a scalar, not of shape {item.shape}")
    if item.dtype.kind not in "biufc":
        raise TypeError(f"the value must be a number, not {value!r}")
    return item.astype(dtype).tobytes()


def array(data, dtype=None, *, device=None, stream=None, bint pinned=False):
    """Return a new array with a copy of the data.

    Returns when the copy is done, unless the data is an array in pinned memory: then it is asynchronous on the stream.

    Parameters
    ----------
    data : array-like
        Whatever `numpy.asarray` takes, or an `Array`.
    dtype : dtype-like, optional
        None: that of the data.

    Other parameters and errors are those of `empty`.
    """
    import numpy

    cdef Stream target = _stream_for(device, stream)
    cdef Array made
    cdef Array source
    cdef Elements dst
    cdef Elements src
    cdef int64_t count
    cdef uintptr_t address
    cdef Ref[CStream] worker
    if isinstance(data, Array) and (dtype is None or as_dtype(dtype) == (<Array>data)._dtype):
        source = data
        source.check()
        made = _make(source.shape, source._dtype, None, target, pinned)
        if source.layout.size() != 0:
            transfer(made, 0, source, 0, source.layout.size(), target)
        if not source.pinned:
            made.synchronize(MemoryAccess.read)
        return made
    if isinstance(data, Array):
        data = (<Array>data).numpy()
    target.get()
    values = numpy.asarray(data)
    if values.dtype.hasobject or values.dtype.kind in "USmMV":
        as_dtype(values.dtype)
    resolved = as_dtype(values.dtype.newbyteorder("=") if dtype is None else dtype)
    values = numpy.ascontiguousarray(values, resolved).reshape(values.shape)
    # No stream: nothing earlier may still use the memory when the host writes to it below.
    made = new_array(target.device, layout_of(values.shape, resolved), resolved, None, _kind(target.device, pinned))
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
