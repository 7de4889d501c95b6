from anabranch._core cimport CEvent, Ref
from anabranch._device cimport DeviceBase
from anabranch._stream cimport Stream


cdef class Event:
    cdef Ref[CEvent] core
    cdef readonly DeviceBase device
    cdef bint _closed
    cdef object __weakref__

    cdef CEvent* get(self) except NULL
    cdef int record_on(self, Stream stream) except -1
    cdef int wait_on(self, Stream stream) except -1
