from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, HostOperation, Point, Touch, translate
from anabranch._core.graph cimport CGraph, NodeTouch

cdef extern from "anabranch/trace/trace.hpp" namespace "anabranch" nogil:
    cbool exploring()
    cbool observing()  # exploring or tracing

cdef extern from "anabranch/hazard/history.hpp" namespace "anabranch" nogil:
    cdef cppclass TouchSpan "std::span<const anabranch::Touch>":
        TouchSpan()
        TouchSpan(const Touch*, size_t)

cdef extern from "anabranch/explore/explore.hpp" namespace "anabranch::explore" nogil:
    # Call this while `exploring` before an operation with these accesses that no `Submission` describes.
    void expect(CStream&, TouchSpan) except +translate
    # While `exploring`: both answers of a query are tried. Call this before the query, without the interpreter lock.
    void ask(CStream&, Point) except +translate
    # The program chose an order by itself, which no run will change.
    void note_uncontrolled() except +translate
    # A host function's thread goes on as a host after it, from before its end until it leaves.
    void linger() except +translate
    void leave() except +translate
    # The host waits for other hosts. Call this without the interpreter lock.
    void run_all() except +translate
    # The host's access to memory, until it is ended.
    uint64_t begin_view(const Touch&) except +translate
    void end_view(uint64_t) except +translate
    # Call this for what was enqueued while `exploring`, without the interpreter lock.
    void pass_views(CStream&) except +translate
    void gate_opened "anabranch::explore::opened"(const HostOperation&) except +translate
    # The graph that is about to be launched, with the accesses of its nodes.
    void expect_nodes(CStream&, const CGraph&, const vector[NodeTouch]&) except +translate
    void name_parameters(CStream&, vector[string]) except +translate
