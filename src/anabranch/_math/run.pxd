from libc.stdint cimport int64_t

from anabranch._core.core cimport Layout
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType
from anabranch._stream.stream cimport Stream

# Positions of arguments that a launch of ours has at most.
cdef enum:
    most_arguments = 6

# The stream for an operation on arrays of a device: `stream`, else the current one. Raises DeviceError, naming the
# operation, for a stream of another device.
cdef Stream stream_on(object stream, Array array, str name)
# A new array on the stream, for the result of an operation.
cdef Array result_array(const Layout& layout, ElementType type_, Stream stream)
# Launches one of our kernels, as `anabranch.launch` does.
cdef int run(object kernel, object dim, tuple args, Stream stream) except -1
# A copy of the elements in row-major order, as an operation of the stream.
cdef Array contiguous_copy(Array array, Stream stream)
# Copies all elements to an array of the same shape and dtype.
cdef int copy_to(Array dst, Array src, Stream stream) except -1
