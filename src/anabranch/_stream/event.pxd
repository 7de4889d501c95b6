from anabranch._core.core cimport CEvent, Ref, forked
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream


cdef class Event:
    cdef Ref[CEvent] core
    cdef readonly DeviceBase device
    cdef bint _closed
    cdef bint waited            # whether a wait covers the last record; maintained under "check"
    cdef bint lost              # whether a record that no wait covered was replaced by one that does not include it
    cdef object __weakref__

    # Raises ClosedError or ForkError.
    cdef inline CEvent* get(self) except NULL:
        return self.refuse() if self._closed or forked() else self.core.get()

    cdef CEvent* refuse(self) except NULL
    cdef int record_on(self, Stream stream) except -1
    cdef int wait_on(self, Stream stream) except -1
    cdef int note_record(self, Stream stream) except -1
    cdef int note_wait(self) except -1
