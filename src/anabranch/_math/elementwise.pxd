from anabranch._memory.dtype cimport ElementType


cdef class Rule:
    """What an operation computes for operands of certain kinds, with its kernels by the places of the operands."""
    cdef object loop
    cdef ElementType result
    cdef dict kernels
    # The dtypes of the operands in the operation.
    cdef int first
    cdef int second
