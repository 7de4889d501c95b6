cdef class TracedScalar:
    """A number that a function is given in each call, while the function is captured."""
    cdef readonly object value      # of the call that is captured
    cdef object fn                  # how it is computed; None: it is an argument itself
    cdef tuple operands
    cdef int position               # of the argument
    cdef set looked                 # the positions of arguments whose values something depends on

    # The value, which from then on belongs to what calls are told apart by.
    cdef object look(self)
    # By the arguments of another call.
    cdef object of(self, tuple args)


cdef TracedScalar scalar_argument(object value, int position, set looked)
# Of the arguments of a launch those that are numbers of the call, or arrays of it: the position, the slot where it
# begins if slots are filled one after the other, and the argument.
cdef tuple marks_of(tuple args)
