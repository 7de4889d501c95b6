from libc.stdint cimport int64_t


cdef class ElementType:
    """One of the types that arrays hold."""
    cdef readonly object dtype      # the numpy.dtype
    cdef readonly int code          # a small number, for keys of compiled kernels
    cdef readonly int64_t itemsize


# The type for what a user may pass as a dtype. Raises TypeError for one that arrays cannot hold.
cdef ElementType element_type(object dtype)
# The same as a numpy.dtype.
cdef object as_dtype(object dtype)
# One element of a type.
cdef struct Item:
    int64_t[2] bytes

# Sets `item` to a scalar, converted as NumPy does. Raises ValueError for one that does not fit the type or is no
# scalar, TypeError for what is no number.
cdef int encode(object value, ElementType type_, Item* item) except -1
# The code of a numpy.dtype. Raises KeyError for one that arrays cannot hold.
cdef int dtype_code(object dtype) except -1
