# A HazardMode. Raises ValueError if the environment variable has another value.
cdef int first_mode() except -1
cdef int set_first_mode(int mode) except -1
# Whether kernels check every index in any mode.
cdef int first_bounds() except -1
