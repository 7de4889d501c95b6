from libc.stdint cimport int64_t

from anabranch._core.core cimport CStream, Elements, Point

# Both copy between GPU memory and unpinned host memory in the order of `stream`, a stream of the GPU, and return when
# the copy is done. The host side must be ready when they are called.
cdef int download(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1
cdef int upload(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1
# Downloads asynchronously: the host's part runs in `host`, a stream of a CPU device. Returns its point there.
cdef Point enqueue_download(
    CStream* stream, CStream* host, const Elements& dst, const Elements& src, int64_t count) except? 0
