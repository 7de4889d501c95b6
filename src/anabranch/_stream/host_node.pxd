from anabranch._task.context cimport TaskState
from libc.stdint cimport uint64_t
from libcpp.string cimport string

from anabranch._core.core cimport CStream, Failure, HostOperation, Past, Ref, ReplayedCall
from anabranch._hazards.ordering cimport DeferredMoment, Touches


cdef class ReplayContext:
    """Dependencies of a replay's host functions."""
    cdef Ref[CStream] stream
    cdef Past before
    cdef uint64_t snapshot   # version of the lane's clock at that time
    cdef DeferredMoment when  # the replay; empty where order is not tracked


cdef class SkippedBy:
    """The failure of a stream, for the future of a function that the stream skipped."""
    cdef Ref[Failure] failure

    # The outcome for the future; None: there is none.
    cdef tuple outcome_of(self, object future)


cdef class ReplayedFunction:
    """A host function of a graph."""
    cdef object fn
    cdef tuple args
    cdef dict kwargs
    cdef str name           # the function's name
    cdef list futures       # for the first replay; then emptied

    cdef int run(self, ReplayedCall* call, SkippedBy skipped) except -1
    cdef int run_with(self, ReplayedCall* call, SkippedBy skipped) except -1
    cdef int complete(self, HostOperation* pending, const string& message, object error) except -1


cdef class ReservedWork:
    """Work of a graph that takes its place in an order outside of it when a replay is launched, not when it runs."""
    # Takes a place, before a replay is launched; or gives back the newest one, if it was not.
    cdef int reserve(self) except -1
    cdef int withdraw(self) except -1


# Takes the places of a replay that is about to be enqueued, or gives them back.
cdef int reserve_all(list functions) except -1
cdef int withdraw_all(list functions) except -1
# Raises CaptureError if there is work that takes places.
cdef int refuse_reserved(list functions, str where) except -1
cdef int refuse_collective(str where) except -1

# Has an exploration count this thread as a host until it leaves, if the function that is about to end has callbacks, or
# returns False.
cdef bint linger_for(object future) except -1
# Adds a host function to the graph that the stream is captured into. Returns the future, which is of its first call.
cdef object submit_captured(
    TaskState state, CStream* stream, object fn, tuple args, dict kwargs, Touches touches, object future)
# Context for the host functions of a replay that is about to be enqueued. None if the graph has none.
cdef ReplayContext context_of_replay(CStream* stream, int mode)
# Call it after enqueueing the replay: its host functions wait for this.
cdef int note_replay(ReplayContext context, int mode) except -1

# Converts an argument of a host function while a graphed call is captured; may refuse it. The package of graphed calls,
# which is above this one, installs the conversion.
ctypedef object (*GraphedArgument)(CStream* stream, object argument)
cdef int read_graphed_arguments_with(GraphedArgument) except -1
