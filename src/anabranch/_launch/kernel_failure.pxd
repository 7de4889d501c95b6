from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CKernel, Ref, translate
from anabranch._launch.loaded cimport BlockSizes, KernelPlace

cdef extern from "anabranch/kernel/kernel.hpp" namespace "anabranch" nogil:
    const size_t launch_site_slots

cdef extern from "anabranch/_core/host_job.hpp" namespace "anabranch::python":
    # A function of this process as a kernel; `keep` is what owns it.
    Ref[CKernel] make_kernel(
        void* code, const string& name, const vector[KernelPlace]&, const BlockSizes&, object keep) except +translate


# The places where a kernel may fail, given as `anabranch.kernels._failure.Place`.
cdef vector[KernelPlace] places_of(object places) except *
