from libc.stdint cimport int64_t

from anabranch._memory.array cimport Array

# Sets the elements of a view, on the current stream of its device.
cdef int assign(Array view, object value) except -1
# `copy` with a NumPy array on one side, which returns when it is done. `given`: its arguments in the order of the
# signature, None for those that were not given.
cdef int copy_with_numpy(list given) except -1
