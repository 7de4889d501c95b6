from libc.stdint cimport int64_t

from anabranch._array cimport Array
from anabranch._stream cimport Stream

# Both enqueue what was checked before.
cdef int enqueue_fill(Array dst, const void* value, Stream stream) except -1
cdef int enqueue_copy(
    Array dst, int64_t dst_offset, Array src, int64_t src_offset, int64_t count, Stream stream) except -1
