# The numpy.dtype for what a user may pass as one. Raises TypeError for a type that arrays cannot hold.
cdef object as_dtype(object dtype)
# A small number per dtype, for keys of compiled kernels.
cdef int dtype_code(object dtype) except -1
