from anabranch._memory.array cimport Array

# A view that has everything but a layout. Raises ClosedError or ForkError.
cdef Array begun_view(Array array)
# A private view of a whole array that stays open if the array is closed. For code that runs Python code or releases the
# interpreter lock between checking an array and using it. Raises ClosedError or ForkError.
cdef Array whole_of(Array array)
# The view that an index selects. Raises IndexError or TypeError.
cdef Array view_of(Array array, object key)
# The element of NumPy's `item`: an index for each dimension, or one in row-major order. Raises as `view_of`.
cdef Array element_of(Array array, tuple index)
