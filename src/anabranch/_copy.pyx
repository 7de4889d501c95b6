"""Copies and fills."""

from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from anabranch._array cimport Array, as_array, new_array
from anabranch._core cimport Access as MemoryAccess
from anabranch._core cimport CStream, MemoryKind, Point, row_major
from anabranch._current cimport as_stream
from anabranch._stream cimport Stream

from anabranch._errors import DeviceError


cdef int enqueue_fill(Array dst, const void* value, Stream stream) except -1:
    cdef CStream* target = stream.get()
    cdef int64_t count = dst.layout.size()
    cdef Point point
    if count != 0:
        point = stream.device.backend.fill(deref(target), dst.elements(0), value, count)
        dst.note(target, point, MemoryAccess.write)
    return 0


cdef int enqueue_copy(
        Array dst, int64_t dst_offset, Array src, int64_t src_offset, int64_t count, Stream stream) except -1:
    cdef CStream* target = stream.get()
    cdef Point point
    if count != 0:
        point = stream.device.backend.copy(deref(target), dst.elements(dst_offset), src.elements(src_offset), count)
        src.note(target, point, MemoryAccess.read)
        dst.note(target, point, MemoryAccess.write)
    return 0


cdef bint _overlap(Array a, Array b) noexcept:
    cdef int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0
    a.layout.extent(a_low, a_high)
    b.layout.extent(b_low, b_high)
    return a.data + a_low < b.data + b_high and b.data + b_low < a.data + a_high


cdef int64_t _position(object value, str name) except -1:
    if not hasattr(type(value), "__index__") or isinstance(value, bool):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    value = value.__index__()
    if value < 0:
        raise ValueError(f"{name} is {value}; it must not be negative")
    if value >= 2**62:
        raise ValueError(f"{name} is {value}, more than an array has elements")
    return value


cdef int _check_range(str name, int64_t offset, int64_t size, int64_t elements, bint counted, str role) except -1:
    if offset > size:
        raise ValueError(f"{name} is {offset}, but the {role} has {size} elements")
    if offset + elements > size:
        what = f"count is {elements}" if counted else f"the source has {elements} elements from its offset on"
        raise ValueError(f"{what}, but the {role} has {size - offset} elements from {name} {offset} on")
    return 0


def fill(dst, value, *, stream=None):
    """Set every element of an array. Asynchronous on the stream.

    Parameters
    ----------
    dst : Array
    value : scalar
        Converted to the array's dtype as NumPy does.
    stream : Stream, optional
        Of the array's device. None: its current stream.

    Raises
    ------
    ValueError
        For a value that is no scalar or does not fit the dtype, or read-only memory.
    DeviceError
        If the stream is another device's.
    """
    from anabranch._create import element_bytes

    cdef Array array = as_array(dst, "dst")
    cdef Stream target = as_stream(stream, array._device)
    if target.device is not array._device:
        raise DeviceError(f"{array!r} cannot be filled on {target!r}, a stream of another device")
    if array.storage.get().read_only():
        raise ValueError(f"{array!r} is read-only memory")
    cdef bytes item = element_bytes(value, array._dtype)
    enqueue_fill(array, <const char*>item, target)


def copy(dst, src, *, stream=None, dst_offset=0, src_offset=0, count=None):
    """Copy elements from one array to another, of the same or another device.

    Asynchronous on the stream between CPU arrays. Arrays that overlap are copied as if through a temporary.

    Parameters
    ----------
    dst, src : Array
        Of the same dtype, and of equal shapes unless an offset or a count is given. Views may be strided.
    stream : Stream, optional
        Of either array's device. None: the current stream of the source's device.
    dst_offset, src_offset : int
        Where to begin, in elements of the flattened array.
    count : int, optional
        How many elements. None: all that the source has from its offset on.

    Raises
    ------
    ValueError
        For a shape, dtype, offset or count that does not fit, or a read-only destination. Nothing is enqueued then.
    DeviceError
        If the stream belongs to neither side.
    """
    _copy(as_array(dst, "dst"), as_array(src, "src"), stream, dst_offset, src_offset, count)


cdef int _copy(Array dst, Array src, object stream, object dst_offset, object src_offset, object count) except -1:
    cdef Stream target = as_stream(stream, src._device)
    if target.device is not dst._device and target.device is not src._device:
        raise DeviceError(f"{target!r} is of neither side of a copy from {src._device.alias} to {dst._device.alias}")
    target.get()
    if dst._dtype != src._dtype:
        raise ValueError(f"cannot copy {src._dtype} to {dst._dtype}; the dtypes must be equal")
    if dst.storage.get().read_only():
        raise ValueError(f"the destination {dst!r} is read-only memory")
    cdef int64_t to = _position(dst_offset, "dst_offset")
    cdef int64_t start = _position(src_offset, "src_offset")
    cdef int64_t elements
    if count is None:
        if to == 0 and start == 0 and dst.shape != src.shape:
            raise ValueError(
                f"cannot copy shape {src.shape} to shape {dst.shape}; "
                "give an offset or a count to copy flattened elements")
        elements = src.layout.size() - start
    else:
        elements = _position(count, "count")
    _check_range("src_offset", start, src.layout.size(), elements, count is not None, "source")
    _check_range("dst_offset", to, dst.layout.size(), elements, count is not None, "destination")
    cdef Array through
    if _overlap(dst, src) and elements != 0:
        if dst.data == src.data and to == start and dst.shape == src.shape and dst.strides == src.strides:
            return 0
        through = new_array(
            target.device, row_major(1, &elements, src.layout.itemsize), src._dtype, target, MemoryKind.device)
        enqueue_copy(through, 0, src, start, elements, target)
        enqueue_copy(dst, to, through, 0, elements, target)
    else:
        enqueue_copy(dst, to, src, start, elements, target)
    return 0
