from anabranch._core cimport CStream, Record, Ref
from anabranch._hazard cimport Touches


cdef class Notification:
    """A point to be told about."""
    cdef Record record


cdef Notification notification(const Record& record)
# `touches`: what the function accesses, or None.
cdef object submit_call(Ref[CStream] stream, object fn, tuple args, dict kwargs, Touches touches)
# Makes sure that errands which streams leave are done.
cdef int ensure_host_thread() except -1
