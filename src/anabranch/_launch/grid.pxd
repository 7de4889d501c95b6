from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from anabranch._core.core cimport CKernel, Ref
from anabranch._launch.call_args cimport CallArgs
from anabranch._launch.configuration cimport LaunchConfig
from anabranch._launch.parameters cimport ParameterRule


cdef class GridKernel:
    """The data of a module's kernel that the launch path uses."""
    cdef vector[ParameterRule] rules
    # Of the arrays in their order, where the code does not say what a pointer is.
    cdef vector[uint8_t] array_access
    cdef vector[Ref[CKernel]] loaded        # by the device's ordinal
    cdef vector[int] most_threads
    cdef vector[size_t] most_shared_memory
    cdef size_t slot_count
    cdef object __weakref__


# Enqueues a checked launch.
cdef int launch_grid(GridKernel kernel, LaunchConfig config, const CallArgs* given) except -1
