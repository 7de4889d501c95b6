from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Ref
from anabranch._core.graph cimport CGraph, GraphAccesses, NodeTouch, Works
from anabranch._memory.array cimport Array
from anabranch._task.context cimport TaskState


cdef class Body:
    """The graph of a function's operations, as the body of a branch or loop."""
    cdef Ref[CGraph] graph
    cdef Ref[Works] works
    cdef GraphAccesses accesses         # of its nodes, in a capture that is exclusive
    cdef list functions                 # the host functions that it calls

    cdef int record(self, TaskState state, CStream* queue, object fn, vector[NodeTouch]* touches) except -1


cdef class Bodies:
    """The bodies and the flag of a branch or loop."""
    cdef Body then
    cdef Body otherwise     # or None
    cdef Array flag         # in a capture that is exclusive

    cdef list functions(self)
