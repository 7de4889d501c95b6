"""Launch arguments of kernels that may fail."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from anabranch._launch.loaded cimport KernelPlace

cdef extern from "anabranch/kernel/fault.hpp" nogil:
    void anabranch_fault(int64_t, int64_t, int64_t, int64_t, int64_t, const char*, int64_t) noexcept


def fault_function():
    """Return the address of what compiled kernels call on a CPU when an index fails (``anabranch_fault``)."""
    return <size_t>&anabranch_fault


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
