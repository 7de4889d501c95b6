from anabranch._context cimport TaskState
from libcpp.string cimport string

from anabranch._core cimport CStream, Pending, Ref, RefCounted, ReplayedCall
from anabranch._hazard cimport Touches


cdef class ReplayedFunction:
    """A host function of a graph."""
    cdef object fn
    cdef tuple args
    cdef dict kwargs
    cdef list futures       # of the first replay, until then

    cdef int run(self, ReplayedCall* call, object error) except -1
    cdef int complete(self, Pending* pending, const string& message, object error) except -1


# A host function becomes a node of the graph that the stream takes part in. The future of its first call.
cdef object submit_captured(
    TaskState state, CStream* stream, object fn, tuple args, dict kwargs, Touches touches)
# What the host functions of a replay have to know that is about to be put into the stream.
cdef Ref[RefCounted] context_of_replay(CStream* stream, int mode) except *
