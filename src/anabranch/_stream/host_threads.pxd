from anabranch._core.core cimport CStream, Record, Ref
from anabranch._hazards.ordering cimport Touches


cdef class Notification:
    """A point to be told about."""
    cdef Record record


cdef class Owner:
    """What memory goes back to."""
    # Once nothing uses the memory any more. What it raises goes to `sys.unraisablehook`.
    cdef int give_back(self) except -1


# How the core lets go of a reference to an Owner. On any thread.
cdef void discard_owner(void* owner) noexcept nogil
cdef Notification notification(const Record& record)
# `touches`: what the function accesses, or None.
cdef object submit_call(Ref[CStream] stream, object fn, tuple args, dict kwargs, Touches touches)
# Makes sure that errands which streams leave are done.
cdef int ensure_host_thread() except -1
