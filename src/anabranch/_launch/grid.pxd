from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CBackend, CKernel, Ref, translate
from anabranch._device.device cimport DeviceBase
from anabranch._launch.call_args cimport CallArgs
from anabranch._launch.configuration cimport LaunchConfig
from anabranch._memory.array cimport Array

cdef extern from *:
    """
    static inline int architecture_of(const anabranch::Backend& backend) { return backend.capabilities().architecture; }
    """
    # Which machine code the device loads; 0 where kernels are functions of this process.
    int architecture_of(const CBackend&) nogil

cdef extern from "anabranch/kernel.hpp" namespace "anabranch" nogil:
    cdef cppclass ParameterPlace:
        size_t offset
        size_t size
    cdef cppclass KernelAttributes:
        int registers
        int max_threads
        size_t shared_memory
        size_t local_memory
        size_t constant_memory
        size_t max_shared_memory
        int binary_version
    cdef cppclass KernelPlace:
        string where
        string what
        string array
        int slot
        int ndim
    cdef cppclass KernelForm:
        vector[uint32_t] slots
        vector[KernelPlace] places
        cbool wide
        cbool coarse
        cbool across
    cdef cppclass Library:
        Ref[CKernel] find(const string& symbol, string name, KernelForm form) except +translate


cdef class LoadedCode:
    """Code loaded for one device."""
    cdef Ref[Library] library
    cdef readonly object device


# What the launch path needs to know of a parameter.
cdef struct ParameterRule:
    uint8_t kind                # a ParameterKind
    uint8_t access              # 0 in-out, 1 in, 2 out
    uint16_t accepted           # for a pointer: a bit per code of dtypes that the elements may have
    uint32_t slot
    uint32_t size


cdef class GridKernel:
    """What the launch path needs of a kernel of a module."""
    cdef vector[ParameterRule] rules
    # Of the arrays in their order, where the code does not say what a pointer is.
    cdef vector[uint8_t] array_access
    cdef vector[Ref[CKernel]] loaded        # by the device's ordinal
    cdef vector[int] most_threads
    cdef vector[size_t] most_shared_memory
    cdef size_t slot_count
    cdef object __weakref__


# The kernel of a symbol in code for one device.
cdef Ref[CKernel] load_kernel(
    DeviceBase device, bytes image, str symbol, str name, const KernelForm& form) except *
# A parameter as messages name it, of either sort of kernel.
cdef object parameter_of(object kernel, Py_ssize_t position)
# An integer as messages name it.
cdef object shown(value)
cdef int refuse_elsewhere(object kernel, Py_ssize_t position, Array array, DeviceBase where) except -1
# Raises ClosedError for an array that is closed, DeviceError for one of another device than the launch is on.
cdef inline int check_array(object kernel, Py_ssize_t position, Array array, DeviceBase where) except -1:
    array.check()
    if array._device is not where:
        return refuse_elsewhere(kernel, position, array, where)
    return 0

# Raises ClosedError if one of the first `count` arguments is an array that is closed. For after Python code has run, in
# which anybody may close one that was looked at: until the launch is enqueued and noted none may run then.
cdef int check_again(const CallArgs* given, Py_ssize_t count) except -1
# Puts a number into the slots of a parameter; whether Python code may have run for it. Raises TypeError, ValueError.
cdef int put_number(GridKernel kernel, Py_ssize_t i, object value, uint64_t* slots) except -1
# Enqueues a checked launch.
cdef int launch_grid(GridKernel kernel, LaunchConfig config, const CallArgs* given) except -1
