from libc.stdint cimport int64_t

from anabranch._core.core cimport Point
from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState

# These functions enqueue work that is already checked. This one returns its point, 0 for no elements.
cdef Point enqueue_fill(Array dst, const void* value, Stream stream) except? 0
# Converts the value first; during a capture of a graphed call the value may be traced.
cdef int enqueue_value(Array dst, object value, Stream stream) except -1
# Copies at least one element between any two devices, also between overlapping arrays. Blocks until the copy is done if
# unpinned host memory takes part.
cdef int transfer(
    TaskState state, Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1
