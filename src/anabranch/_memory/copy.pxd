from libc.stdint cimport int64_t

from anabranch._core.core cimport Point
from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState

# All enqueue what was checked before. This one returns the point of it, 0 where there are no elements.
cdef Point enqueue_fill(Array dst, const void* value, Stream stream) except? 0
# The same by a value that is converted first; in a captured function maybe one of the call.
cdef int enqueue_value(Array dst, object value, Stream stream) except -1
# Copies between any two devices, also of overlapping arrays, at least one element; returns when the copy is done where
# host memory that is not pinned takes part.
cdef int transfer(
    TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1
