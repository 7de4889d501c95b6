from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType

# New arrays with the elements of another, in row-major order. Asynchronous on `stream`: a Stream, or None.
cdef Array copied(Array array, object stream)
cdef Array converted(Array array, ElementType dtype, object stream)
# The array itself if it is contiguous, else a copy.
cdef Array contiguous_of(Array array, object stream)
cdef Array moved(Array array, object device, object stream)
