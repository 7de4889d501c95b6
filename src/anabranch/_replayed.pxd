from anabranch._context cimport TaskState
from libcpp.string cimport string

from anabranch._core cimport CStream, Pending, ReplayedCall
from anabranch._hazard cimport Touches


cdef class ReplayedFunction:
    """A host function of a graph."""
    cdef object fn
    cdef tuple args
    cdef dict kwargs
    cdef object future      # of the first replay, until then
    cdef object expected    # the replays that are to call it

    cdef int run(self, ReplayedCall* call, object error) except -1
    cdef int complete(self, Pending* pending, const string& message, object error) except -1


# A host function becomes a node of the graph that the stream takes part in. The future of its first call.
cdef object submit_captured(
    TaskState state, CStream* stream, object fn, tuple args, dict kwargs, Touches touches)
# A replay that is about to be put into the stream calls the function. What `forget_call` takes, if it is not after all.
cdef object expect_call(ReplayedFunction function, CStream* stream, int mode)
cdef int forget_call(object call) except -1
