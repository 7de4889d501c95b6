from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t

from anabranch._core cimport CStream, Point, Ref, forked
from anabranch._device cimport DeviceBase


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
    # The core's stream for this thread. Raises ClosedError, ForkError.
    cdef inline CStream* get(self) except NULL:
        return self.special() if self._closed or self.per_thread or forked() else self.record.get()

    # A per-thread stream's, or what is wrong.
    cdef CStream* special(self) except NULL
    # A point that covers everything put into the stream by now.
    cdef inline Point now(self, CStream* stream) except? 0:
        return self.device.backend.record(deref(stream))
