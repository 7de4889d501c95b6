"""Copies between a GPU and unpinned host memory, chunk by chunk through a pinned buffer.

Two chunks alternate, so that one is in flight while the host copies the other.
"""

from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    ByteRange, CBackend, CStream, Elements, MemoryKind, Point, Ref, Storage, copy_elements, find_device, row_major,
    synchronize_point,
)

cdef enum:
    chunk_bytes = 4 << 20


cdef class _Chunks:
    cdef vector[Ref[Storage]] memory
    cdef Point[2] used
    cdef int64_t size

    cdef int open(self, int64_t itemsize, int64_t count) except -1:
        # The first CPU device allocates pinned memory.
        cdef string alias = b"cpu:0"
        cdef CBackend* host = &find_device(alias)
        cdef int _
        self.size = min(max(chunk_bytes // itemsize, 1), count)
        for _ in range(2 if self.size < count else 1):
            self.memory.push_back(Storage.allocate(deref(host), NULL, self.size * itemsize, MemoryKind.pinned))
        return 0

    cdef Elements elements(self, int which, int64_t itemsize, int64_t count) except *:
        cdef Elements elements
        elements.pointer = self.memory[which].get().pointer()
        elements.layout = row_major(1, &count, itemsize)
        elements.offset = 0
        elements.home = NULL
        return elements

    cdef int note(self, int which, CStream* stream, Point point) except -1:
        # An interrupted copy then releases the buffer only after its last use.
        cdef ByteRange range
        range.low = 0
        range.high = self.memory[which].get().bytes()
        self.memory[which].get().accesses().note(deref(stream), point, MemoryAccess.read_write, range)
        self.used[which] = point
        return 0


cdef int download(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1:
    cdef _Chunks chunks = _Chunks.__new__(_Chunks)
    cdef int64_t itemsize = src.layout.itemsize
    cdef Elements source = src
    cdef Elements target = dst
    cdef Elements staged
    cdef int64_t enqueued = 0
    cdef int64_t copied = 0
    cdef int64_t part
    cdef Point point
    cdef int which = 0
    if count == 0:
        return 0
    chunks.open(itemsize, count)
    while copied < count:
        # The GPU's copies run one chunk ahead of the host's.
        while enqueued < count and enqueued < copied + 2 * chunks.size:
            part = min(chunks.size, count - enqueued)
            which = (enqueued // chunks.size) % 2
            source.offset = src.offset + enqueued
            staged = chunks.elements(which, itemsize, part)
            with nogil:
                point = stream.backend().copy(deref(stream), staged, source, part)
            chunks.note(which, stream, point)
            enqueued += part
        part = min(chunks.size, count - copied)
        which = (copied // chunks.size) % 2
        synchronize_point(stream, chunks.used[which])
        staged = chunks.elements(which, itemsize, part)
        target.offset = dst.offset + copied
        with nogil:
            copy_elements(target, staged, part)
        copied += part
    return 0


cdef Point enqueue_download(
        CStream* stream, CStream* host, const Elements& dst, const Elements& src, int64_t count) except? 0:
    cdef _Chunks chunks = _Chunks.__new__(_Chunks)
    cdef int64_t itemsize = src.layout.itemsize
    cdef Elements source = src
    cdef Elements target = dst
    cdef Elements staged
    cdef int64_t enqueued = 0
    cdef int64_t part
    cdef Point point = 0
    cdef int which = 0
    chunks.open(itemsize, count)
    while enqueued < count:
        part = min(chunks.size, count - enqueued)
        which = (enqueued // chunks.size) % 2
        if chunks.used[which] != 0:
            stream.backend().wait(deref(stream), deref(host), chunks.used[which])
        source.offset = src.offset + enqueued
        target.offset = dst.offset + enqueued
        staged = chunks.elements(which, itemsize, part)
        point = stream.backend().copy(deref(stream), staged, source, part)
        chunks.note(which, stream, point)
        host.backend().wait(deref(host), deref(stream), point)
        point = host.backend().copy(deref(host), target, staged, part)
        chunks.note(which, host, point)
        enqueued += part
    return point


cdef int upload(CStream* stream, const Elements& dst, const Elements& src, int64_t count) except -1:
    cdef _Chunks chunks = _Chunks.__new__(_Chunks)
    cdef int64_t itemsize = src.layout.itemsize
    cdef Elements source = src
    cdef Elements target = dst
    cdef Elements staged
    cdef int64_t copied = 0
    cdef int64_t part
    cdef Point point = 0
    cdef int which = 0
    if count == 0:
        return 0
    chunks.open(itemsize, count)
    while copied < count:
        part = min(chunks.size, count - copied)
        which = (copied // chunks.size) % 2
        if chunks.used[which] != 0:
            synchronize_point(stream, chunks.used[which])
        staged = chunks.elements(which, itemsize, part)
        source.offset = src.offset + copied
        target.offset = dst.offset + copied
        with nogil:
            copy_elements(staged, source, part)
            point = stream.backend().copy(deref(stream), target, staged, part)
        chunks.note(which, stream, point)
        copied += part
    return synchronize_point(stream, point)
