cdef class TracedScalar:
    """Stands for a number that differs between calls, while the function that receives it is captured."""
    cdef readonly object value      # in the captured call
    cdef object fn                  # computes it from `operands`; None: an argument itself
    cdef tuple operands
    cdef int position               # position of the argument
    cdef set looked                 # positions of arguments whose values the captured graph depends on

    # Returns the value and makes it part of the key of the captured graph.
    cdef object concretize(self)
    # Returns the value for the arguments of another call.
    cdef object of(self, tuple args)


cdef TracedScalar scalar_argument(object value, int position, set looked)
# Launch arguments that are traced scalars, or arrays of the call: position, first slot if the slots are filled in
# sequence, and the argument.
cdef tuple marks_of(tuple args)
