from anabranch._core.core cimport CBackend, CStream, OperationKind, Point

# While `tracing`: what was put into the stream since `open_operation`, with the name of a kernel or a function and the
# bytes that it touches, if it has them.
cdef int show(CStream* stream, Point point, OperationKind kind, object name, size_t size) except -1

# Memory was allocated, of a stream or of none.
cdef int show_memory(CBackend& backend, CStream* stream, size_t size) except -1
