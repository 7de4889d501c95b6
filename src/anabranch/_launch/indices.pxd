from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from anabranch._core.core cimport CKernel, Ref
from anabranch._launch.call_args cimport CallArgs
from anabranch._launch.constants cimport Constants


cdef extern from "anabranch/_launch/plan_table.hpp" namespace "anabranch::python" nogil:
    cdef cppclass PlanTable:
        CKernel* find(const uint8_t*, size_t)
        void add(const uint8_t*, size_t, Ref[CKernel]) except +


cdef class KernelBase:
    """The data of a kernel that the launch path uses, without attribute access through Python."""
    cdef PlanTable plans
    cdef vector[int] access_codes   # per parameter: 0 in-out, 1 in, 2 out
    cdef bint loops                 # the function has loops
    cdef bint in_blocks             # it calls ab.block
    cdef Constants constants        # None if there are none, or before the first compilation
    cdef object __weakref__


# Enqueues a checked launch.
cdef int launch_indices(KernelBase kernel, object dim, const CallArgs* given) except -1
