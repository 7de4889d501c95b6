from libc.stdint cimport uint64_t


cdef class TaskState:
    """The current device and streams of one task. Immutable: a change makes a new one."""
    cdef uint64_t thread
    cdef int device
    cdef tuple streams      # by the device's ordinal; None or missing: the default stream
    # Of a state that entering a scope made: whose scope, what it puts back, and which device's stream (-1: none).
    cdef object owner
    cdef TaskState outer
    cdef int ordinal
    # Of any other state: the innermost scope around it.
    cdef TaskState scope


cdef TaskState current_state()
# The stream made current for a device, or None.
cdef inline object stream_in(TaskState state, int ordinal):
    return state.streams[ordinal] if ordinal < len(state.streams) else None

cdef int enter_device(object owner, int device) except -1
cdef int enter_stream(object owner, int device, object stream) except -1
# Puts back what the innermost scope entered by `owner` found.
cdef int leave_scope(object owner) except -1
# Makes a stream current with no scope.
cdef int use_stream(int device, object stream) except -1
