from anabranch._memory.array cimport Array

# A view of all of an array, of one's own: it stays open whatever becomes of the array. For whoever runs Python code or
# lets go of the interpreter lock between looking at an array and using it. Raises ClosedError, ForkError.
cdef Array whole_of(Array array)
# The view that an index selects. Raises IndexError, TypeError.
cdef Array view_of(Array array, object key)
