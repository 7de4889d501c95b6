from anabranch._core.core cimport CStream, Point, Record, Ref


cdef class Notification:
    """A point that `await` waits for."""
    cdef Record record


cdef class Owner:
    """An owner that memory returns to."""
    # Runs once nothing uses the memory any more. Exceptions go to `sys.unraisablehook`.
    cdef int give_back(self) except -1


# Drops the core's reference to an Owner. Any thread.
cdef void discard_owner(void* owner) noexcept nogil
cdef Notification notification(const Record& record)
cdef Notification notification_at(const Ref[CStream]& stream, Point point)
# `reads`, `writes`: the arrays that the function accesses, as `Stream.submit` takes them.
cdef object submit_call(Ref[CStream] stream, object fn, tuple args, dict kwargs, object reads, object writes)
# Ensures that a thread takes the jobs that streams post.
cdef int ensure_host_thread() except -1
