# The kind of an operand, see `rules`: the code of an array or of a NumPy scalar, or that of a Python number. -1 for
# anything else. Raises ClosedError for a closed array.
cdef int kind_of(object operand) except -2
# A number of that kind converted to an operation's dtype, for a launch. Raises OverflowError as NumPy does.
cdef object number_for(object number, int kind, int code)
