from anabranch._core.core cimport CEvent, Ref, forked
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream


cdef class Event:
    cdef Ref[CEvent] core
    cdef readonly DeviceBase device
    cdef bint _closed
    cdef bint waited            # for the last record; kept track of under "check"
    cdef bint lost              # a record that nobody had waited for was replaced by one that does not cover it
    cdef object __weakref__

    # Raises ClosedError, ForkError.
    cdef inline CEvent* get(self) except NULL:
        return self.refuse() if self._closed or forked() else self.core.get()

    cdef CEvent* refuse(self) except NULL
    cdef int record_on(self, Stream stream) except -1
    cdef int wait_on(self, Stream stream) except -1
    cdef int note_record(self, Stream stream) except -1
    cdef int note_wait(self) except -1
