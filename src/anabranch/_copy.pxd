from libc.stdint cimport int64_t

from anabranch._array cimport Array
from anabranch._stream cimport Stream

# All enqueue what was checked before.
cdef int enqueue_fill(Array dst, const void* value, Stream stream) except -1
# The same by a value that is converted first; in a captured function maybe one of the call.
cdef int enqueue_value(Array dst, object value, Stream stream) except -1
cdef int enqueue_copy(
    Array dst, int64_t dst_offset, Array src, int64_t src_offset, int64_t count, Stream stream) except -1
# The same for any two devices and overlapping arrays, of at least one element; returns when the copy is done where host
# memory that is not pinned takes part.
cdef int transfer(Array dst, int64_t to, Array src, int64_t start, int64_t count, Stream target) except -1
