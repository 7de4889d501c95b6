"""The core's graphs as the Cython modules see them. Contracts are in the headers."""

from libc.stdint cimport uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CBackend, CCapture, CStream, HostWork, LaunchShape, Point, Ref, RefCounted, Storage, Touch, translate)
from anabranch._core.kernel cimport LaunchGrid

cdef extern from "anabranch/graph/graph.hpp" namespace "anabranch" nogil:
    cpdef enum class NodeKind "anabranch::NodeKind":
        kernel
        copy
        fill
        alloc
        free
        external
        host
        branch
        loop
        graph
    cdef cppclass GraphNode:
        NodeKind kind
        string name
        CBackend* device
        vector[uint32_t] after
        size_t bytes
    cdef cppclass Works:
        pass
    cdef cppclass CGraph "anabranch::Graph":
        vector[GraphNode] nodes
        CBackend* home
    cdef cppclass GraphInstance:
        Ref[CGraph] graph() const
        Ref[Works] works() const
        cbool has_failed_elsewhere(CStream&)
        void follow(CStream&) except +translate
        Point launch(CStream&, Ref[RefCounted]) except +translate
        void note(CStream&) except +translate
        cbool update(const Ref[CGraph]&, const Ref[Works]&) except +translate
        uint64_t replays() const
        uint64_t instantiations() const

cdef extern from "anabranch/_core/graph.hpp" namespace "anabranch::python" nogil:
    cdef cppclass NodeTouch "anabranch::NodeTouch":
        pass
    cdef cppclass GraphAccesses "anabranch::GraphAccesses":
        vector[NodeTouch] touches
        GraphAccesses with_node(uint32_t node, const GraphAccesses& fresh) except +
    void tell_origin(CStream&, Point, object) except +translate
    object origin_of(const GraphNode&)
    void forget_origins(CGraph&, const Works&)
    Ref[CCapture] begin_capture(CStream&) except +translate
    Ref[CCapture] begin_body(CStream&) except +translate
    Ref[CGraph] end_capture(CCapture&, Ref[Works]&) except +translate
    Ref[GraphInstance] instantiate(const Ref[CGraph]&, const Ref[Works]&) except +translate
    Point add_nested(
        CStream&, NodeKind, const string& name, const void* flag, Ref[CGraph], Ref[Works], Ref[CGraph], Ref[Works]
    ) except +translate
    Point add_host(CStream&, const string& name, Ref[HostWork]) except +translate
    cbool share_bytes(const Storage&, const Storage&)
    vector[Touch] merged(const vector[NodeTouch]&) except +
    vector[uint32_t] unordered(const CGraph&, const vector[NodeTouch]&, uint32_t node) except +
    cbool has_external(const Works&)
    GraphAccesses take_accesses(CGraph&)
    const LaunchShape* shape_of(const Works&, uint32_t node)
    const LaunchGrid* grid_of(const Works&, uint32_t node)
    vector[CBackend*] devices_of(const CGraph&) except +
    vector[uint32_t] with_functions(const CGraph&) except +
    void set_work(GraphInstance&, uint32_t node, const Ref[Works]&) except +translate
