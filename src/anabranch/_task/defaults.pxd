# A HazardMode. Raises ValueError for an environment variable that says something else.
cdef int first_mode() except -1
cdef int set_first_mode(int mode) except -1
# Whether kernels check every index, whatever the mode.
cdef int first_bounds() except -1
