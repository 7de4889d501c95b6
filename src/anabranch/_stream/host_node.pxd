from anabranch._task.context cimport TaskState
from libc.stdint cimport uint64_t
from libcpp.string cimport string

from anabranch._core.core cimport CStream, Past, Pending, Ref, ReplayedCall
from anabranch._hazards.ordering cimport ComingMoment, Touches


cdef class ReplayContext:
    """What the host functions of a replay come after."""
    cdef Ref[CStream] stream
    cdef Past before
    cdef uint64_t learned   # by the stream's lane, then
    cdef ComingMoment when  # the replay; none where order is not kept track of


cdef class ReplayedFunction:
    """A host function of a graph."""
    cdef object fn
    cdef tuple args
    cdef dict kwargs
    cdef str name           # what the function is called
    cdef list futures       # of the first replay, until then

    cdef int run(self, ReplayedCall* call, object error) except -1
    cdef int run_with(self, ReplayedCall* call, object error) except -1
    cdef int complete(self, Pending* pending, const string& message, object error) except -1


# A host function becomes a node of the graph that the stream takes part in. The future of its first call.
cdef object submit_captured(
    TaskState state, CStream* stream, object fn, tuple args, dict kwargs, Touches touches)
# What the host functions have to know of a replay that is about to be put into the stream. None: there are none.
cdef ReplayContext context_of_replay(CStream* stream, int mode)
# To be called when it was, for the functions wait for that.
cdef int note_replay(ReplayContext context, int mode) except -1

# What a host function is given for an argument, if what captures it is a graphed call; may refuse it. The package of
# graphed calls says how to find out, since it is above this one.
ctypedef object (*GraphedArgument)(CStream* stream, object argument)
cdef int read_graphed_arguments_with(GraphedArgument) except -1
