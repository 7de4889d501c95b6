"""Allocation of arrays: the layout for a shape, memory of a device, memory of another owner."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uintptr_t

from anabranch._core.core cimport (
    CBackend, CStream, HazardMode, Layout, MemoryKind, Storage, checks_begun, discard_reference, max_dimensions,
    row_major, tracing)
from anabranch._core.tracing cimport show_memory
from anabranch._device.device cimport DeviceBase, device_of
from anabranch._memory.allocator cimport allocate_with
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType, dtype_code
from anabranch._stream.host_threads cimport ensure_host_thread
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state
from anabranch._task.site cimport current_site


cdef Layout layout_of(object shape, int64_t itemsize) except *:
    cdef int64_t sizes[max_dimensions]
    cdef int ndim = 0
    cdef int overflow = 0
    if type(shape) is int:
        sizes[0] = PyLong_AsLongLongAndOverflow(shape, &overflow)
        if overflow == 0 and sizes[0] >= 0:
            return row_major(1, sizes, itemsize)
    if not isinstance(shape, (tuple, list)):
        shape = tuple(shape.tolist()) if getattr(shape, "ndim", 0) == 1 else (shape,)
    if len(shape) > max_dimensions:
        raise ValueError(f"an array has at most {max_dimensions} dimensions, not {len(shape)}")
    for size in shape:
        if not hasattr(type(size), "__index__") or isinstance(size, bool):
            raise TypeError(f"a shape is an int or a tuple of ints; {size!r} is not an int")
        size = size.__index__()
        if size >= 2**63:
            raise ValueError(f"the size {size} in dimension {ndim} is over 2**63 - 1")
        if size < 0:
            raise ValueError(f"negative size {size} in dimension {ndim}")
        sizes[ndim] = size
        ndim += 1
    return row_major(ndim, sizes, itemsize)


cdef Layout layout_of_others(object shape, object strides, int64_t itemsize) except *:
    cdef Layout layout = layout_of(shape, itemsize)
    cdef object reach = itemsize
    cdef int d
    if strides is None:
        return layout
    if len(strides) != layout.ndim:
        raise ValueError(f"{len(strides)} strides are given for {layout.ndim} dimensions")
    for d in range(layout.ndim):
        stride = strides[d]
        # Strides are meaningless where there is at most one element; some libraries leave garbage there.
        if -2**63 <= stride < 2**63:
            layout.strides[d] = stride
        if layout.shape[d] > 1:
            reach += (layout.shape[d] - 1) * abs(stride)
    if reach >= 2**63 and layout.size() != 0:
        raise ValueError(f"elements of shape {shape} with strides of {strides} bytes span over 2**63 - 1 bytes")
    return layout


cdef inline bint is_captured(CStream* stream) noexcept:
    return stream != NULL and stream.capture() != NULL


cdef Array new_array(DeviceBase device, const Layout& layout, ElementType dtype, Stream stream, MemoryKind kind):
    cdef Array array = Array.__new__(Array)
    cdef CStream* target = NULL
    cdef CBackend* backend = device.backend
    if stream is not None:
        target = stream.get()
        backend = &target.backend()
    if device.allocator is not None and kind == MemoryKind.device and layout.size() != 0 and not is_captured(target):
        array.storage = allocate_with(device, stream, layout.size() * layout.itemsize)
    else:
        array.storage = Storage.allocate(deref(backend), target, layout.size() * layout.itemsize, kind)
    array.storage.get().listed = True
    if checks_begun() and current_state().mode == <int>HazardMode.check:
        array.storage.get().site = current_site()
    if tracing() and (target == NULL or target.capture() == NULL):
        show_memory(deref(device.backend), target, array.storage.get().bytes())
    array._device = device
    array.layout = layout
    array.data = <char*>array.storage.get().pointer()
    array._dtype = dtype.dtype
    array.code = dtype.code
    array.contiguous = True
    array._open = True
    return array


cdef int _refuse_misplaced(const Layout& layout, uintptr_t address) except -1:
    cdef uintptr_t misplaced = address
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef int d
    if layout.size() == 0:
        return 0
    if address == 0:
        raise ValueError(f"the memory of {layout.size()} elements is at address 0")
    layout.extent(low, high)
    if low < 0 and address < <uintptr_t>-low or address + <uintptr_t>high < address:
        raise ValueError(f"no memory has elements from {low} to {high} bytes off the address {address:#x}")
    for d in range(layout.ndim):
        if layout.shape[d] > 1:
            misplaced |= <uintptr_t>layout.strides[d]
    # Item sizes are powers of two.
    if misplaced & <uintptr_t>(min(layout.itemsize, 8) - 1):
        raise ValueError("the memory is not aligned for its dtype; copy it with anabranch.array")
    return 0


cdef Array adopt_array(
        DeviceBase device, Layout layout, object dtype, char* data, bint read_only, object owner, char* whole,
        size_t bytes):
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef Array array = Array.__new__(Array)
    _refuse_misplaced(layout, <uintptr_t>data)
    if whole == NULL:
        layout.extent(low, high)
        whole = data + low
        bytes = high - low
    ensure_host_thread()
    Py_INCREF(owner)
    array.storage = Storage.adopt(
        deref(device.backend), whole, bytes, read_only, <void*>owner, discard_reference)
    # Host memory that already belongs to another device's array stays with that device.
    cdef CBackend* home = &array.storage.get().backend()
    if home != device.backend and home.capabilities().host_memory and device.backend.capabilities().host_memory:
        device = device_of(home)
    array._device = device
    array.layout = layout
    array.data = data
    array._dtype = dtype
    array.code = dtype_code(dtype)
    array.contiguous = layout.contiguous()
    array._read_only = read_only
    array._open = True
    return array
