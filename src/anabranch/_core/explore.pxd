from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Pending, Point, translate
from anabranch._core.graph cimport CGraph, NodeTouch

cdef extern from "anabranch/trace.hpp" namespace "anabranch" nogil:
    cbool exploring()
    cbool observing()  # exploring or tracing

cdef extern from "anabranch/explore.hpp" namespace "anabranch::explore" nogil:
    # While `exploring`: both answers of a query are tried. Call this before the query, without the interpreter lock.
    void ask(CStream&, Point) except +translate
    void gate_opened "anabranch::explore::opened"(const Pending&) except +translate
    # The graph that is about to be launched, with the accesses of its nodes.
    void expect_nodes(CStream&, const CGraph&, const vector[NodeTouch]&) except +translate
    void name_parameters(CStream&, vector[string]) except +translate
