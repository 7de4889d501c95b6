"""Declared accesses of host functions."""

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._hazards.ordering cimport Touches
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.slice cimport whole_of


def touches_of(reads, writes):
    """Return the touches of an operation that reads `reads`, and reads and writes `writes`."""
    cdef Touches touches = Touches.__new__(Touches)
    cdef Array array
    touches.arrays = []
    for name, arrays, access in (("reads", reads, MemoryAccess.read), ("writes", writes, MemoryAccess.read_write)):
        for each in [arrays] if type(arrays) is Array else arrays:
            # A private view: the iterable may run code that closes the array.
            array = whole_of(as_array(each, f"an element of {name}"))
            if access != MemoryAccess.read and array._read_only:
                raise ValueError(f"the function is said to write {array._described()}, which is read-only memory")
            touches.arrays.append(array)
            touches.all.push_back(array.touch(access))
    return touches
