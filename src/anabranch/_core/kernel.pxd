from libc.stdint cimport uint32_t

cdef extern from "anabranch/kernel/kernel.hpp" namespace "anabranch" nogil:
    cdef cppclass LaunchGrid:
        LaunchGrid()
        uint32_t* grid
        uint32_t* block
        uint32_t* cluster
        uint32_t shared_memory
        bint cooperative
