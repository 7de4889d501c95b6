"""Arguments of kernels whose parameters are declared: in loaded code, or by the caller."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from anabranch._memory.array cimport Array

cdef enum ParameterKind:
    bits_kind       # of the given size; a pointer, if that is what an address takes and an array is given
    pointer_kind
    float_kind
    signed_kind
    unsigned_kind
    integer_kind    # of unknown sign
    struct_kind
    bool_kind

# The data of a parameter that the launch path uses.
cdef struct ParameterRule:
    uint8_t kind                # a ParameterKind
    uint8_t access              # 0 in-out, 1 in, 2 out
    uint16_t accepted           # for a pointer: a bit per code of dtypes that the elements may have
    uint32_t slot
    uint32_t size


# Puts the address of an array into the slot of a parameter. Raises TypeError, ValueError.
cdef int put_pointer(
    object kernel, const ParameterRule* rule, Py_ssize_t i, Array array, uint8_t access, uint64_t* slots) except -1
# Puts a number into the slots of a parameter; whether Python code may have run for it. Raises TypeError, ValueError.
cdef int put_declared(
    object kernel, const ParameterRule* rule, Py_ssize_t i, object value, uint64_t* slots) except -1
