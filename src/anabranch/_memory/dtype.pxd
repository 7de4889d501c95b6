from libc.stdint cimport int64_t


cdef class ElementType:
    """An element type of arrays."""
    cdef readonly object dtype      # the numpy.dtype
    cdef readonly str name          # its name, which NumPy puts together at each call
    cdef readonly int code          # small number for keys of compiled kernels
    cdef readonly int64_t itemsize


# The type for a user's dtype argument. Raises TypeError for a dtype that arrays cannot hold.
cdef ElementType element_type(object dtype)
# The same as a numpy.dtype.
cpdef object as_dtype(object dtype)
# One element of any type.
cdef struct Item:
    int64_t[2] bytes

# Converts a scalar as NumPy does and stores it in `item`. Raises ValueError if it does not fit the type or is not a
# scalar, TypeError if it is not a number.
cdef int encode(object value, ElementType type_, Item* item) except -1
# The code of a numpy.dtype. Raises KeyError for a dtype that arrays cannot hold.
cdef int dtype_code(object dtype) except -1
