from libcpp.vector cimport vector

from anabranch._context cimport TaskState
from anabranch._core cimport CStream, Ref, Touch, forked
from anabranch._core_graph cimport CGraph, GraphAccesses, GraphInstance, Works
from anabranch._device cimport DeviceBase


cdef class Node:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly int index
    cdef readonly DeviceBase device
    cdef object origin              # the kernel, function or graph, or the bodies of a branch or loop


cdef class Graph:
    cdef Ref[GraphInstance] core
    cdef GraphAccesses accesses
    cdef vector[Touch] touches      # the same, as those of one operation
    cdef readonly DeviceBase device
    cdef list devices
    cdef str state                  # why it cannot be launched, or None
    cdef list _nodes
    cdef list _edges
    cdef list functions             # the host functions that its replays call
    cdef object __weakref__

    # Raises ClosedError, ForkError, CaptureError.
    cdef inline int check(self) except -1:
        return self.refuse() if self.state is not None or forked() else 0

    cdef inline GraphInstance* get(self) except NULL:
        self.check()
        return self.core.get()

    cdef int refuse(self) except -1
    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const GraphAccesses& accesses) except -1
    cdef int describe(self) except -1
    cdef list all_nodes(self)
    cdef int enqueue(self, TaskState state, CStream* queue) except -1


# The host functions that replays of a graph may call.
cdef list functions_of(const CGraph& graph)
