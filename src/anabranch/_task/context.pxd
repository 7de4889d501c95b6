from libc.stdint cimport uint64_t

from anabranch._core.core cimport CCapture, HostTask, Moment, Past, Ref


cdef class Task:
    """What a thread, an asyncio task or a host function knows of the order."""
    cdef Ref[HostTask] core
    cdef const void* context    # the context variables that are its own


cdef class Leaving:
    """Whether a scope was left where it was entered."""
    cdef bint done


cdef class TaskState:
    """The current device and streams of one task. Immutable: a change makes a new one."""
    cdef uint64_t thread
    cdef Task task
    cdef int mode               # a HazardMode
    cdef bint bounds            # whether kernels check every index whatever the mode
    cdef object races           # the list that collects them instead of an error, or None
    cdef Ref[CCapture] capture  # the graph capture that the task is in, maybe over; or none
    cdef int device
    # The current stream of one device (ordinal -1: of none) and the state that tells those of the others. None, and no
    # state that tells: the default stream.
    cdef int ordinal
    cdef object stream
    cdef TaskState rest
    # Of a state that entering a scope made, which puts `rest` back: whose scope.
    cdef object owner
    cdef object token       # until the scope is left
    cdef Leaving leaving    # of what other contexts have copies of, or None
    # Of any other state: the innermost scope around it.
    cdef TaskState scope


cdef TaskState current_state()
# The current task alone, which costs less to find. Lives at least until this thread asks again.
cdef HostTask* current_task() except NULL
cdef HostTask* find_task() except NULL
# Where the context has none of its own, which then is made: from the one found, if that is this thread's.
cdef TaskState new_state(TaskState found)
# The stream made current for a device, or None.
cdef object stream_in(TaskState state, int ordinal)

cdef int enter_device(object owner, int device) except -1
cdef int enter_stream(object owner, int device, object stream) except -1
# Puts back what the innermost scope entered by `owner` found.
cdef int leave_scope(object owner) except -1
# Makes a stream current with no scope.
cdef int use_stream(int device, object stream) except -1
# What becomes of missing order, and whether kernels check every index, with no scope.
cdef int use_mode(int mode, bint bounds, object races) except -1
# The capture that the task is in, with no scope. Null: none.
cdef int use_capture(Ref[CCapture] capture) except -1
# The one that the task is in and that has not ended, or null.
cdef CCapture* current_capture() except? NULL
# Begins the task of a host function, in a context of its own: the operation that it is, and what it comes after.
cdef Task begin_call(const Past& past, const Moment& call)
