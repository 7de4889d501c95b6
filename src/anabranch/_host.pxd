from anabranch._core cimport CStream, Pending, Point, Ref


cdef class Notification:
    """A point to be told about."""
    cdef Ref[CStream] stream
    cdef Point point


cdef Notification notification(Ref[CStream] stream, Point point)
cdef object submit_call(Ref[CStream] stream, object fn, tuple args, dict kwargs)
# Makes sure that errands which streams leave are done.
cdef int ensure_host_thread() except -1
