from libcpp.vector cimport vector
from libc.stdint cimport uint32_t

from anabranch._core.core cimport Ref, Touch
from anabranch._core.graph cimport CGraph, GraphAccesses, GraphInstance, Works
from anabranch._device.device cimport DeviceBase


cdef class Node:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly int index
    cdef readonly DeviceBase device
    cdef object origin              # kernel or function, bodies of a branch or loop; of a graph its host functions


# The state of a graph, replaced as a whole. Immutable, so a launch needs only a reference.
cdef class Recorded:
    cdef Ref[GraphInstance] core
    cdef Ref[CGraph] graph
    cdef GraphAccesses accesses
    cdef vector[Touch] touches      # the same, as those of one operation
    cdef list devices
    cdef list functions             # the host functions that its replays call
    cdef list _nodes                # created at the first use
    cdef list _edges

    cdef list nodes(self)
    cdef list edges(self)
    cdef str dot(self)              # both in the language of Graphviz


# The state of an instance that was just made or is about to be changed.
cdef Recorded recorded_as(const Ref[GraphInstance]& core, const Ref[CGraph]& graph, const GraphAccesses& accesses)
# The host functions that replays of a graph may call.
cdef list functions_of(const CGraph& graph)
# Over what a node launches its kernel, as `launch` takes it: `dim` and `block`.
cdef tuple dimensions_of(const Works& works, uint32_t node)
