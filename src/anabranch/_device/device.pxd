from anabranch._core.core cimport CBackend


cdef class DeviceBase:
    cdef CBackend* backend
    cdef readonly str alias
    cdef int ordinal
    cdef object allocator       # allocates the device's memory; None: its own pool


# The device for a user's argument: a Device, an alias, or None for the current device.
cdef DeviceBase as_device(object device)
cdef DeviceBase device_at(int ordinal)
cdef DeviceBase device_of(CBackend* backend)
