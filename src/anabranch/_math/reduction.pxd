from libc.stdint cimport int64_t

from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType
from anabranch._stream.stream cimport Stream


cdef class Reduction:
    """A reduction of elements of one dtype."""
    cdef int number
    cdef str name
    cdef str source
    cdef ElementType accumulator
    cdef ElementType result
    cdef dict kernels

    # A kernel made by the function of `reduction_kernels` that the last word of `name` names, kept under the whole.
    cdef object kernel(self, str name, tuple given)


# The elements as a reduction sees them: outer axes that are kept, those that are reduced, inner ones that are kept.
cdef struct Extent:
    int64_t outer
    int64_t reduced
    int64_t inner

# The result of a reduction on the current stream, or on `stream`.
cdef object reduce_array(int reduction, Array array, object axis, bint keepdims, object stream)
