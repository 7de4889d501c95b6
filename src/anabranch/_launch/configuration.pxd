from anabranch._core.core cimport LaunchShape
from anabranch._core.kernel cimport LaunchGrid

cdef extern from *:
    """
    // A launch has fewer than this; a difference of two indices then fits 64 bits.
    static const long long most_indices = 1LL << 62;
    """
    const long long most_indices


cdef class LaunchConfig:
    """The blocks of a launch."""
    cdef LaunchGrid shape
    cdef int threads            # per block


# The sizes of an index space, in any form that a launch takes. Raises TypeError, ValueError.
cdef int read_dimensions(object dim, LaunchShape* shape) except -1
