from anabranch._core.core cimport CBackend


cdef class DeviceBase:
    cdef CBackend* backend
    cdef readonly str alias
    cdef int ordinal
    cdef object allocator       # where its memory comes from; None: its own


# The device for what a user may pass as one: a Device, an alias, or None for the current one.
cdef DeviceBase as_device(object device)
cdef DeviceBase device_at(int ordinal)
cdef DeviceBase device_of(CBackend* backend)
