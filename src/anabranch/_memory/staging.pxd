from libc.stdint cimport int64_t

from anabranch._core.core cimport CStream, Elements, Point

# Both copy between memory of a GPU and host memory that is not pinned, in the order of `stream`, one of the GPU's, and
# return when the copy is done. The host side must be ready when they are called.
cdef int download(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1
cdef int upload(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1
# Downloads without waiting: the host's part is done in the order of `host`, a CPU device's stream. Its point there.
cdef Point enqueue_download(
    CStream* stream, CStream* host, const Elements& dst, const Elements& src, int64_t count) except? 0
