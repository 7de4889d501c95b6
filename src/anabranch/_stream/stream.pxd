from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t

from anabranch._core.core cimport CStream, Point, Ref, capturing, forked
from anabranch._device.device cimport DeviceBase


cdef class Stream:
    cdef Ref[CStream] record
    cdef readonly DeviceBase device
    cdef uintptr_t key              # the handle, also after close, for comparing
    cdef bint per_thread            # each thread has a queue of its own
    cdef bint is_default
    cdef bint _closed
    cdef object keeper              # what owns an external handle
    cdef bint external              # the handle is somebody else's
    cdef str _name
    cdef object __weakref__

    cdef void _release(self) noexcept
    # The core's stream for this thread; what records for it, while it is captured. Raises ClosedError, ForkError,
    # and CaptureError for the legacy stream in a capture.
    cdef inline CStream* get(self) except NULL:
        if self._closed or self.per_thread or forked() or capturing():
            return self.special()
        return self.record.get()

    # Raises ClosedError, ForkError.
    cdef inline int check(self) except -1:
        return self.refuse() if self._closed or forked() else 0

    cdef int refuse(self) except -1
    # A per-thread stream's, or a recorder, or what is wrong.
    cdef CStream* special(self) except NULL
    # A point that covers everything put into the stream by now.
    cdef inline Point now(self, CStream* stream) except? 0:
        return stream.backend().record(deref(stream))


# The object for a stream of the core.
cdef Stream stream_over(DeviceBase device, const Ref[CStream]& record, uintptr_t key)
