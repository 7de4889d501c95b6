from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t

from anabranch._core.core cimport CStream, Point, Ref, capturing, forked
from anabranch._device.device cimport DeviceBase


cdef class Stream:
    cdef Ref[CStream] record
    cdef readonly DeviceBase device
    cdef uintptr_t key              # the handle; valid for comparison after close
    cdef bint per_thread            # each thread has its own queue
    cdef bint is_default
    cdef bint _closed
    cdef object keeper              # owner of an external handle
    cdef bint external              # whether the handle belongs to another library
    cdef str _name
    cdef object __weakref__

    cdef void _release(self) noexcept
    # The core's stream for this thread, or its recorder during a capture. Raises ClosedError, ForkError, and
    # CaptureError for the legacy stream in a capture.
    cdef inline CStream* get(self) except NULL:
        if self._closed or self.per_thread or forked() or capturing():
            return self.special()
        return self.record.get()

    # Raises ClosedError or ForkError.
    cdef inline int check(self) except -1:
        return self.refuse() if self._closed or forked() else 0

    cdef int refuse(self) except -1
    # The slow path of `get`: a per-thread stream, a recorder, or an error.
    cdef CStream* special(self) except NULL
    # A point that covers everything enqueued on the stream so far.
    cdef inline Point now(self, CStream* stream) except? 0:
        return stream.backend().record(deref(stream))


# The Stream object for a core stream.
cdef Stream stream_over(DeviceBase device, const Ref[CStream]& record, uintptr_t key)
