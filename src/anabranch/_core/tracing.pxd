from libc.stdint cimport int64_t

from anabranch._core.core cimport CBackend, CStream, OperationKind, Point, TracedOperation

# Call only while `tracing`. Records the operation enqueued on the stream since `open_operation`, with the name of the
# kernel or function, if any, and the bytes that it touches.
cdef int show(CStream* stream, Point point, OperationKind kind, object name, size_t size) except -1

# Records that the host has compiled a kernel, or read it from the disk, since a time of `now_nanoseconds`.
cdef int show_compilation(CBackend& backend, str name, int64_t since) except -1

# Records an allocation for a stream, or for none.
cdef int show_memory(CBackend& backend, CStream* stream, size_t size) except -1

# The public name of an operation's kind.
cdef str kind_of(const TracedOperation& traced)

# The name of the kernel or function, else the kind.
cdef str name_of(const TracedOperation& traced)
