"""Operations on a stream: launches of our kernels, and the arrays for their results."""

from cpython.object cimport PyObject

from anabranch._core.core cimport Layout, MemoryKind, row_major
from anabranch._core.immortal cimport make_immortal_once_shared
from anabranch._launch.call_args cimport CallArgs
from anabranch._launch.grid cimport GridKernel, launch_grid
from anabranch._launch.indices cimport KernelBase, launch_indices
from anabranch._memory.alloc cimport new_array
from anabranch._memory.array cimport Array
from anabranch._memory.copy cimport transfer
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state

from anabranch._core.errors import DeviceError


cdef Stream stream_on(object stream, Array array, str name):
    cdef Stream chosen
    if stream is None:
        return current_stream_of(current_state(), array._device.ordinal)
    chosen = as_stream(stream, None)
    if chosen.device is not array._device:
        raise DeviceError(
            f"{name}: {chosen!r} is a stream of {chosen.device.alias}, not of the device of {array._described()}")
    return chosen


cdef Array result_array(const Layout& layout, ElementType type_, Stream stream):
    return new_array(
        stream.device, row_major(layout.ndim, layout.shape, type_.itemsize), type_, stream, MemoryKind.device)


cdef int run(object kernel, object dim, tuple args, Stream stream) except -1:
    cdef PyObject* pointers[most_arguments]
    cdef CallArgs given
    cdef Py_ssize_t i
    for i in range(len(args)):
        pointers[i] = <PyObject*>args[i]
    given.args = pointers
    given.count = len(args)
    given.stream = <PyObject*>stream
    given.device = NULL
    given.block = NULL
    make_immortal_once_shared(<PyObject*>kernel)
    if isinstance(kernel, KernelBase):
        return launch_indices(<KernelBase>kernel, dim, &given)
    return launch_grid(<GridKernel>kernel, dim, &given)


cdef Array contiguous_copy(Array array, Stream stream):
    cdef Array copy = result_array(array.layout, element_type(array._dtype), stream)
    copy_to(copy, array, stream)
    return copy


cdef int copy_to(Array dst, Array src, Stream stream) except -1:
    if dst.layout.size() != 0:
        transfer(current_state(), dst, 0, src, 0, dst.layout.size(), stream)
    return 0
