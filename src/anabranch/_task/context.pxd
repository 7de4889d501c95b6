from libc.stdint cimport uint64_t

from anabranch._core.core cimport CCapture, HostTask, Moment, Past, Ref


cdef class Task:
    """The order that a thread, an asyncio task or a host function has established."""
    cdef Ref[HostTask] core
    cdef const void* context    # the context whose variables belong to the task


cdef class Leaving:
    """Whether a scope was left in the context that entered it."""
    cdef bint done


cdef class TaskState:
    """A task's current device and streams. Immutable: a change creates a new state."""
    cdef uint64_t thread
    cdef Task task
    cdef int mode               # a HazardMode
    cdef bint bounds            # whether kernels check every index in any mode
    cdef object races           # list that collects races in place of an error, or None
    cdef Ref[CCapture] capture  # the task's graph capture, which may have ended, or null
    cdef int device
    # The current stream of one device (ordinal -1: none), and a chain of states for the other devices. None, or the end
    # of the chain: the default stream.
    cdef int ordinal
    cdef object stream
    cdef TaskState rest
    # For a state created by entering a scope, which restores `rest`: the scope's owner.
    cdef object owner
    cdef object token       # until the scope is left
    cdef Leaving leaving    # shared with copies in other contexts, or None
    # For any other state: the innermost enclosing scope.
    cdef TaskState scope


cdef TaskState current_state()
# The current task only, which is cheaper to find. Valid at least until this thread's next call.
cdef HostTask* current_task() except NULL
cdef HostTask* find_task() except NULL
# Creates the state for a context that has none: from `found`, if that belongs to this thread.
cdef TaskState new_state(TaskState found)
# The stream made current for a device, or None.
cdef object stream_in(TaskState state, int ordinal)

cdef int enter_device(object owner, int device) except -1
cdef int enter_stream(object owner, int device, object stream) except -1
# Restores the state from before the innermost scope of `owner`.
cdef int leave_scope(object owner) except -1
# Makes a stream current outside any scope.
cdef int use_stream(int device, object stream) except -1
# Sets the hazard mode and index checks, outside any scope.
cdef int use_mode(int mode, bint bounds, object races) except -1
# Sets the task's capture, outside any scope. Null: none.
cdef int use_capture(Ref[CCapture] capture) except -1
# The task's capture if it has not ended, or null.
cdef CCapture* current_capture() except? NULL
# Begins the task of a host function, in its own context, with its moment `call` and the clock before it.
cdef Task begin_call(const Past& past, const Moment& call)
