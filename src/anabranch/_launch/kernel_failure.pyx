"""Launch arguments of kernels that may fail."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from anabranch._launch.loaded cimport KernelPlace

cdef extern from "anabranch/kernel/fault.hpp" nogil:
    void anabranch_fault(int64_t, int64_t, int64_t, int64_t, int64_t, const char*, int64_t) noexcept
    void anabranch_failed_index(int64_t) noexcept


def fault_functions():
    """Return the addresses of what compiled kernels call on a CPU when an index fails, by the functions' symbols."""
    return {"anabranch_fault": <size_t>&anabranch_fault, "anabranch_failed_index": <size_t>&anabranch_failed_index}


cdef vector[KernelPlace] places_of(object places) except *:
    cdef vector[KernelPlace] found
    cdef KernelPlace place
    for each in places:
        place.where = each.where.encode(errors="backslashreplace")
        place.what = each.what.encode(errors="backslashreplace")
        place.array = each.array.encode(errors="backslashreplace")
        place.slot = each.slot
        place.ndim = each.ndim
        found.push_back(place)
    return found
