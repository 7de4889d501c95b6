"""Copies and fills."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from anabranch._core.builtin cimport make_function
from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    CBackend, CStream, Layout, MemoryKind, OperationKind, Point, Touch, byte_t, open_operation, row_major,
    synchronize_point, tracing)
from anabranch._core.graph cimport tell_origin
from anabranch._core.tracing cimport show
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, begin, commit, commit_traced, observe_stream
from anabranch._memory.alloc cimport new_array
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.assign cimport copy_with_numpy
from anabranch._memory.dtype cimport ElementType, Item, element_type, encode
from anabranch._memory.slice cimport whole_of
from anabranch._memory.staging cimport download, upload
from anabranch._memory.traced_scalar cimport TracedScalar
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state

from anabranch._core.errors import DeviceError

cdef extern from "anabranch/memory/copy_path.hpp" namespace "anabranch" nogil:
    enum class CopyPath:
        none, direct, temporary, host, beside, packed
    cppclass CopySide:
        CBackend* device
        MemoryKind kind
        byte_t* data
        const Layout* layout
        bint contiguous
        int64_t offset
    CopyPath copy_path(const CopySide& dst, const CopySide& src, const CBackend&)

cdef int64_t most_elements = 2**62


cdef Point enqueue_fill(Array dst, const void* value, Stream stream) except? 0:
    cdef CStream* target = stream.get()
    cdef int64_t count = dst.layout.size()
    cdef TaskState state
    cdef Submission submission
    cdef Touch touch
    cdef Point point = 0
    if count != 0:
        state = current_state()
        touch = _touch(dst, MemoryAccess.write, 0, count)
        begin(&submission, state, target, &touch, 1)
        point = target.backend().fill(deref(target), dst.elements(0), value, count)
        commit_traced(&submission, state, target, point, OperationKind.fill, count * dst.layout.itemsize)
    return point


cdef int enqueue_value(Array dst, object value, Stream stream) except -1:
    cdef ElementType type_ = element_type(dst._dtype)
    cdef bint of_call = type(value) is TracedScalar
    cdef Item item
    encode((<TracedScalar>value).value if of_call else value, type_, &item)
    dst.check()  # a value that converts itself may have closed it
    cdef Point point = enqueue_fill(dst, &item, stream)
    if of_call and point != 0 and stream.get().capture() != NULL:
        tell_origin(deref(stream.get()), point, (value, type_))
    return 0


cdef int _enqueue(
        TaskState state, Array dst, int64_t dst_offset, Array src, int64_t src_offset, int64_t count,
        Stream stream) except -1:
    cdef CStream* target = stream.get()
    cdef Submission submission
    cdef Touch[2] touches
    cdef Point point
    touches[0] = _touch(src, MemoryAccess.read, src_offset, count)
    touches[1] = _touch(dst, MemoryAccess.write, dst_offset, count)
    begin(&submission, state, target, touches, 2)
    point = target.backend().copy(deref(target), dst.elements(dst_offset), src.elements(src_offset), count)
    return commit_traced(&submission, state, target, point, OperationKind.copy, count * dst.layout.itemsize)


cdef inline Touch _touch(Array array, MemoryAccess access, int64_t offset, int64_t count) noexcept:
    # Of a part of an array the elements that it has; where those are strided, all of its elements.
    cdef Touch touch = array.touch(access)
    if array.contiguous:
        touch.overwrites = access == MemoryAccess.write
        touch.low += offset * array.layout.itemsize
        touch.high = touch.low + count * array.layout.itemsize
    return touch


cdef inline bint _same_shape(Array a, Array b) noexcept:
    cdef int d
    if a.layout.ndim != b.layout.ndim:
        return False
    for d in range(a.layout.ndim):
        if a.layout.shape[d] != b.layout.shape[d]:
            return False
    return True


cdef inline int64_t _position(object value, str name) except -1:
    cdef int overflow = 0
    cdef int64_t position
    if type(value) is int:
        position = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0 and 0 <= position < most_elements:
            return position
    return _convert_position(value, name)


cdef int64_t _convert_position(object value, str name) except -1:
    if not hasattr(type(value), "__index__") or isinstance(value, bool):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    value = value.__index__()
    if value < 0:
        raise ValueError(f"{name} is {value}; it must not be negative")
    if value >= most_elements:
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
    TypeError
        For a value that is no number.
    DeviceError
        If the stream is another device's.
    """
    cdef Array array = as_array(dst, "dst")
    cdef Stream target = as_stream(stream, array._device)
    if target.device is not array._device:
        raise DeviceError(f"{array._described()} cannot be filled on {target!r}, a stream of another device")
    if array._read_only:
        raise ValueError(f"{array._described()} is read-only memory")
    enqueue_value(array, value, target)


cdef enum:
    dst_, src_, stream_, dst_offset_, src_offset_, count_, parameters

cdef tuple _parameters = ("dst", "src", "stream", "dst_offset", "src_offset", "count")

cdef bytes _description = b"""copy(dst, src, *, stream=None, dst_offset=0, src_offset=0, count=None)
--

Copy elements from one array to another, of the same or another device.

Asynchronous on the stream, but between a GPU and CPU memory that is not pinned, and with a NumPy array: then it
returns when the copy is done. Arrays that overlap are copied as if through a temporary.

Parameters
----------
dst, src : Array, or one of them a numpy.ndarray
    Of the same dtype, and of equal shapes unless an offset or a count is given. Views may be strided.
stream : Stream, optional
    Of either array's device. None: the current stream of the destination's device if that is a GPU,
    else of the source's. A NumPy array counts as of the other side's device.
dst_offset, src_offset : int
    Where to begin, in elements of the flattened array.
count : int, optional
    How many elements. None: all that the source has from its offset on.

Raises
------
ValueError
    For a shape, dtype, offset or count that does not fit, or a read-only destination. Nothing is enqueued then.
DeviceError
    If the stream belongs to neither side."""


cdef object _copy(PyObject* module, PyObject** args, Py_ssize_t count, PyObject* names):
    cdef PyObject* given[parameters]
    cdef int i
    if count > 2:
        raise TypeError(f"copy takes two arrays, dst and src, and the rest by name; {count} were given")
    for i in range(parameters):
        given[i] = args[i] if i < count else NULL
    if names != NULL:
        _read_names(given, args + count, <tuple>names)
    if given[dst_] == NULL or given[src_] == NULL:
        raise TypeError("copy takes two arrays, dst and src")
    if type(<object>given[dst_]) is not Array or type(<object>given[src_]) is not Array:
        copy_with_numpy([None if given[i] == NULL else <object>given[i] for i in range(parameters)])
        return None
    # A number that converts itself may close the arrays, so those are looked at after it.
    cdef int64_t to = 0 if given[dst_offset_] == NULL else _position(<object>given[dst_offset_], "dst_offset")
    cdef int64_t start = 0 if given[src_offset_] == NULL else _position(<object>given[src_offset_], "src_offset")
    cdef bint counted = given[count_] != NULL and <object>given[count_] is not None
    cdef int64_t elements = _position(<object>given[count_], "count") if counted else 0
    cdef Array dst = as_array(<object>given[dst_], "dst")
    cdef Array src = as_array(<object>given[src_], "src")
    cdef TaskState state = current_state()
    cdef DeviceBase device = src._device if _is_host(dst) else dst._device
    cdef Stream target
    if given[stream_] == NULL:
        target = current_stream_of(state, device.ordinal)
    else:
        target = as_stream(<object>given[stream_], device)
    if target.device is not dst._device and target.device is not src._device:
        raise DeviceError(f"{target!r} is of neither side of a copy from {src._device.alias} to {dst._device.alias}")
    target.get()
    if dst.code != src.code:
        raise ValueError(f"cannot copy {src._dtype} to {dst._dtype}; the dtypes must be equal")
    if dst._read_only:
        raise ValueError(f"the destination {dst._described()} is read-only memory")
    cdef int64_t src_size = src.layout.size()
    cdef int64_t dst_size = dst.layout.size()
    if not counted:
        if to == 0 and start == 0 and not _same_shape(dst, src):
            raise ValueError(
                f"cannot copy shape {src.shape} to shape {dst.shape}; give an offset or a count to flatten them")
        elements = src_size - start
    if elements < 0 or start + elements > src_size or to + elements > dst_size:
        _check_range("src_offset", start, src_size, elements, counted, "source")
        _check_range("dst_offset", to, dst_size, elements, counted, "destination")
    if elements != 0:
        transfer(state, dst, to, src, start, elements, target)
    return None


copy = make_function(b"copy", _copy, _description, __name__)


cdef int _read_names(PyObject** given, PyObject** values, tuple names) except -1:
    for i, name in enumerate(names):
        if name not in _parameters:
            raise TypeError(f"copy got an unexpected argument {name!r}")
        place = _parameters.index(name)
        if given[<int>place] != NULL:
            raise TypeError(f"copy got {name} twice")
        given[<int>place] = values[i]
    return 0


cdef bint _is_host(Array array) noexcept:
    return array._device.backend.capabilities().host_memory


cdef int transfer(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    cdef CopyPath path = copy_path(_side(dst, to), _side(src, start), deref(target.device.backend))
    if path == CopyPath.direct:
        return _enqueue(state, dst, to, src, start, count, target)
    if path == CopyPath.none:
        return 0
    # An allocator's code, or what runs while the host waits, may close them.
    return _transfer_by(path, state, whole_of(dst), to, whole_of(src), start, count, target)


cdef int _transfer_by(
        CopyPath path, TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count,
        Stream target) except -1:
    if path == CopyPath.temporary:
        return _enqueue_through(state, dst, to, src, start, count, target)
    if path == CopyPath.host:
        return _transfer_now(state, dst, to, src, start, count, target)
    if path == CopyPath.beside:
        return _enqueue_beside(state, dst, to, src, start, count, target)
    return _enqueue_packed(state, dst, to, src, start, count, target)


cdef inline CopySide _side(Array array, int64_t offset) noexcept:
    cdef CopySide side
    side.device = array._device.backend
    side.kind = array.storage.get().kind()
    side.data = <byte_t*>array.data
    side.layout = &array.layout
    side.contiguous = array.contiguous
    side.offset = offset
    return side


cdef int _order_all(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    # Orders a copy of several steps as a whole, before the first: a race names the program's stream, not a helper's.
    cdef Touch[2] touches
    touches[0] = _touch(src, MemoryAccess.read, start, count)
    touches[1] = _touch(dst, MemoryAccess.write, to, count)
    cdef Submission submission
    return begin(&submission, state, target.get(), touches, 2)


cdef Array _contiguous(DeviceBase device, Array like, int64_t count, Stream stream):
    return new_array(
        device, row_major(1, &count, like.layout.itemsize), element_type(like._dtype), stream, MemoryKind.device)


cdef Stream _aside(DeviceBase device, Stream after):
    # A helper stream of the device that comes after the other stream's work so far.
    cdef Stream stream = Stream(device, name="copy")
    stream.wait_stream(after)
    return stream


cdef int _enqueue_through(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    _order_all(state, dst, to, src, start, count, target)
    cdef Array through = _contiguous(target.device, src, count, target)
    _enqueue(state, through, 0, src, start, count, target)
    return _enqueue(state, dst, to, through, 0, count, target)


cdef int _enqueue_beside(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    # A CPU stream cannot copy to or from a GPU; a stream of the GPU does it in its stead.
    _order_all(state, dst, to, src, start, count, target)
    cdef Stream worker = _aside((src if _is_host(dst) else dst)._device, target)
    _enqueue(state, dst, to, src, start, count, worker)
    target.wait_stream(worker)
    return 0


cdef int _enqueue_packed(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    # Between two GPUs that may not reach each other only runs of bytes can be copied: the elements are
    # gathered on one side and scattered on the other.
    cdef Stream there
    cdef Stream here
    cdef Array gathered
    cdef Array arrived
    _order_all(state, dst, to, src, start, count, target)
    if src.contiguous:
        gathered = src
    else:
        there = target if target.device is src._device else _aside(src._device, target)
        gathered = _contiguous(src._device, src, count, there)
        _enqueue(state, gathered, 0, src, start, count, there)
        if there is not target:
            target.wait_stream(there)
        start = 0
    if dst.contiguous:
        return _enqueue(state, dst, to, gathered, start, count, target)
    here = target if target.device is dst._device else _aside(dst._device, target)
    arrived = _contiguous(dst._device, dst, count, here)
    _enqueue(state, arrived, 0, gathered, start, count, here)
    _enqueue(state, dst, to, arrived, 0, count, here)
    if here is not target:
        target.wait_stream(here)
    return 0


cdef int _transfer_now(
        TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1:
    # Memory that is not pinned is copied by the host, once the stream has come to it.
    cdef CStream* queue = target.get()
    cdef Touch[2] touches
    if queue.capture() != NULL:
        queue.capture().refuse(
            b"a copy between a GPU and memory that is not pinned cannot be captured: the host does it")
    touches[0] = _touch(src, MemoryAccess.read, start, count)
    touches[1] = _touch(dst, MemoryAccess.write, to, count)
    cdef Submission submission
    begin(&submission, state, queue, touches, 2)
    synchronize_point(queue, target.now(queue))
    cdef Stream worker = target
    if target.device.backend.capabilities().host_memory:
        worker = Stream((src if _is_host(dst) else dst)._device, name="copy")
    cdef CStream* copier = worker.get()
    if tracing():
        open_operation(deref(copier))
    cdef Array far = src if _is_host(dst) else dst
    # So that memory dropped while this waits is freed after it.
    far.hold(copier, worker.device.backend.newest(deref(copier)), MemoryAccess.read_write)
    if _is_host(dst):
        download(copier, dst.elements(to), src.elements(start), count)
    else:
        upload(copier, dst.elements(to), src.elements(start), count)
    if tracing():
        show(copier, copier.issued(), OperationKind.copy, None, count * dst.layout.itemsize)
    far.storage.get().accesses().forget(deref(copier))
    commit(&submission, state, queue.issued())
    return observe_stream(queue)
