# Values that a kernel was compiled with, or a function captured, from outside of the function.
cdef class Constants:
    cdef str made, keeps, advice  # for messages
    cdef list places    # a cell, or a pair of a dictionary and a key
    cdef list names     # for messages
    cdef list values
    cdef list elements  # bytes of a value that is a small array, or None
    cdef bint told      # of a change


# Warns, once, if a value has changed. Runs Python code only then. Holds the interpreter lock.
cdef int check_constants(Constants constants) except -1
