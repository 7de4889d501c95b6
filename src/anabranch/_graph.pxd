from libc.stdint cimport uint32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core cimport (
    CCapture, CGraph, CStream, GraphInstance, GraphNode, HostWork, NodeKind, Point, Ref, Touch, Works, translate)
from anabranch._device cimport DeviceBase


cdef extern from "graphs.hpp" namespace "anabranch::python" nogil:
    cdef cppclass NodeTouch "anabranch::NodeTouch":
        pass
    void tell_origin(CStream&, object, const string& name) except +translate
    object origin_of(const GraphNode&)
    Ref[CCapture] begin_capture(CStream&) except +translate
    Ref[CCapture] begin_body(CStream&) except +translate
    Ref[GraphInstance] instantiate(const Ref[CGraph]&, const Ref[Works]&) except +translate
    Point add_nested(
        CStream&, NodeKind, const string& name, const void* flag, Ref[CGraph], Ref[Works], Ref[CGraph], Ref[Works]
    ) except +translate
    Point add_host(CStream&, const string& name, Ref[HostWork]) except +translate
    vector[Touch] merged(const vector[NodeTouch]&) except +
    vector[uint32_t] unordered(const CGraph&, const vector[NodeTouch]&, uint32_t node) except +
    vector[NodeTouch] take_touches(CGraph&)
    vector[NodeTouch] with_touches(const vector[NodeTouch]&, uint32_t node, const vector[NodeTouch]&) except +
    void set_work(GraphInstance&, uint32_t node, const Ref[Works]&) except +translate


cdef class Node:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly int index
    cdef readonly DeviceBase device
    cdef object origin              # what a launch was made from: kernel, dim and block


cdef class Graph:
    cdef Ref[GraphInstance] core
    cdef vector[NodeTouch] accesses
    cdef vector[Touch] touches      # the same, as those of one operation
    cdef readonly DeviceBase device
    cdef set devices
    cdef str state                  # why it cannot be launched, or None
    cdef list _nodes
    cdef list _edges
    cdef list functions             # the host functions that its replays call
    cdef object __weakref__

    cdef GraphInstance* get(self) except NULL
    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const vector[NodeTouch]& accesses) except -1
    cdef int describe(self) except -1
    cdef int enqueue(self, CStream* queue) except -1
