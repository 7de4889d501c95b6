"""Operations and allocations as traces record them."""

from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from anabranch._core.core cimport (
    CStream, OperationKind, Point, Ref, TracedOperation, close_operation, trace_instant, translate)
from anabranch._core.gc_pause cimport pause_collector, resume_collector


cdef extern from "anabranch/trace/trace.hpp" namespace "anabranch" nogil:
    void trace_host(CBackend&, TracedOperation, int64_t) except +translate

cdef tuple _kinds = (
    "kernel", "copy", "fill", "alloc", "free", "host", "graph", "record", "wait", "compile", "collective")


cdef str kind_of(const TracedOperation& traced):
    return _kinds[<int>traced.kind]


cdef str name_of(const TracedOperation& traced):
    return traced.name.decode() or kind_of(traced)


cdef int show(CStream* stream, Point point, OperationKind kind, object name, size_t size) except -1:
    cdef TracedOperation operation
    operation.kind = kind
    operation.point = point
    operation.bytes = size
    if isinstance(name, str):
        operation.name = _text(<str>name)
    close_operation(deref(stream), operation)
    return 0


cdef bytes _text(str name):
    # The operation's accesses are not committed yet, so a garbage collection could close its arrays.
    cdef bint collected = pause_collector()
    try:
        return name.encode(errors="backslashreplace")
    finally:
        if collected:
            resume_collector()


cdef int show_memory(CBackend& backend, CStream* stream, size_t size) except -1:
    cdef TracedOperation operation
    operation.kind = OperationKind.alloc
    operation.bytes = size
    if stream != NULL:
        operation.stream = Ref[CStream].share(stream)
    trace_instant(backend, operation)
    return 0


cdef int show_compilation(CBackend& backend, str name, int64_t since) except -1:
    cdef TracedOperation operation
    operation.kind = OperationKind.compile
    operation.name = name.encode(errors="backslashreplace")
    trace_host(backend, operation, since)
    return 0
