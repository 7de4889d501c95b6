from libcpp.vector cimport vector

from anabranch._core.core cimport Ref, Storage
from anabranch._memory.array cimport Array

# An array like another, of other memory.
cdef Array stand_in(Array array, Ref[Storage] storage)
# Which argument's memory it is, or -1.
cdef int argument_of(Storage* storage, const vector[Ref[Storage]]& aliases) noexcept
# A function of the arguments of a call that returns what the captured call did; None if that is None. `positions`: of
# the arguments that the aliases stand for. Raises CaptureError for objects in which they would not be found.
cdef object result_of(
    object result, list stand_ins, const vector[Ref[Storage]]& aliases, const vector[char*]& firsts,
    const vector[int]& positions, int level=*)
