from libc.stdint cimport uint64_t


cdef class TaskState:
    """The current device and streams of one task. Immutable: a change makes a new one."""
    cdef uint64_t thread
    cdef int device
    # The current stream of one device (ordinal -1: of none) and the state that tells those of the others. None, and no
    # state that tells: the default stream.
    cdef int ordinal
    cdef object stream
    cdef TaskState rest
    # Of a state that entering a scope made, which puts `rest` back: whose scope.
    cdef object owner
    cdef object token       # until the scope is left
    # Of any other state: the innermost scope around it.
    cdef TaskState scope


cdef TaskState current_state()
# The stream made current for a device, or None.
cdef object stream_in(TaskState state, int ordinal)

cdef int enter_device(object owner, int device) except -1
cdef int enter_stream(object owner, int device, object stream) except -1
# Puts back what the innermost scope entered by `owner` found.
cdef int leave_scope(object owner) except -1
# Makes a stream current with no scope.
cdef int use_stream(int device, object stream) except -1
