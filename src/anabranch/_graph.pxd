from libcpp.vector cimport vector

from anabranch._core cimport CStream, Ref, Touch
from anabranch._core_graph cimport CGraph, GraphInstance, NodeTouch, Works
from anabranch._device cimport DeviceBase


cdef class Node:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly int index
    cdef readonly DeviceBase device
    cdef object origin              # the kernel, function or graph, or the bodies of a branch or loop


cdef class Graph:
    cdef Ref[GraphInstance] core
    cdef vector[NodeTouch] accesses
    cdef vector[Touch] touches      # the same, as those of one operation
    cdef readonly DeviceBase device
    cdef list devices
    cdef str state                  # why it cannot be launched, or None
    cdef list _nodes
    cdef list _edges
    cdef list functions             # the host functions that its replays call
    cdef object __weakref__

    cdef GraphInstance* get(self) except NULL
    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const vector[NodeTouch]& accesses) except -1
    cdef int describe(self) except -1
    cdef list all_nodes(self)
    cdef int enqueue(self, CStream* queue) except -1


# The host functions that replays of a graph may call.
cdef list functions_of(const CGraph& graph)
