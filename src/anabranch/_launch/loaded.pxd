from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CBackend, CKernel, Ref, translate
from anabranch._device.device cimport DeviceBase

cdef extern from *:
    """
    static inline int architecture_of(const anabranch::Backend& backend) { return backend.capabilities().architecture; }
    """
    # Which machine code the device loads; 0 where kernels are functions of this process.
    int architecture_of(const CBackend&) nogil

cdef extern from "anabranch/kernel/kernel.hpp" namespace "anabranch" nogil:
    cdef cppclass ParameterPlace:
        size_t offset
        size_t size
    cdef cppclass KernelPlace:
        string where
        string what
        string array
        int slot
        int ndim
    cdef cppclass BlockSizes:
        int64_t& operator[](size_t)
    cdef cppclass KernelForm:
        vector[uint32_t] slots
        vector[KernelPlace] places
        cbool flat
        cbool coarse
        cbool across
        BlockSizes block
    cdef cppclass Library:
        Ref[CKernel] find(const string& symbol, string name, KernelForm form) except +translate


cdef class LoadedCode:
    """Code loaded for one device."""
    cdef Ref[Library] library
    cdef readonly object device


# The kernel of a symbol in code for one device.
cdef Ref[CKernel] load_kernel(
    DeviceBase device, bytes image, str symbol, str name, const KernelForm& form) except *
