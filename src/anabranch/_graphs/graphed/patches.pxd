"""The parts of a graph that depend on the arguments of a call, as the Cython modules see them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Point, Ref, RefCounted, Storage, byte_t, translate
from anabranch._core.graph cimport GraphInstance, NodeTouch, Works

cdef extern from "anabranch/_graphs/graphed/patches.hpp" namespace "anabranch::python" nogil:
    cdef cppclass Pointer:
        uint32_t argument
        int64_t offset
    cdef cppclass Slot "anabranch::python::NodePatch::Slot":
        Slot()
        uint32_t slot
        Pointer pointer
    cdef cppclass Number "anabranch::python::NodePatch::Number":
        Number()
        uint32_t slot
        uint32_t words
        size_t first
    cdef cppclass NodePatch:
        NodePatch()
        uint32_t node
        vector[Slot] slots
        vector[Number] numbers
        cbool has_dst
        cbool has_src
        Pointer dst
        Pointer src
        Ref[Patches] body
        Ref[Patches] otherwise
    cdef cppclass Patches:
        vector[NodePatch] nodes
    Ref[Patches] make_patches() except +
    Point launch_call(
        GraphInstance&, CStream&, Ref[RefCounted], const Patches&, byte_t**, size_t, const uint64_t*, size_t
    ) except +translate
    byte_t* destination(const Works&, uint32_t)
    byte_t* source(const Works&, uint32_t)
    Storage* storage_of(const NodeTouch&)
    uint32_t node_of(const NodeTouch&)
    cbool is_write(const NodeTouch&)
