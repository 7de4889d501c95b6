from anabranch._core.core cimport Ref, Storage
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream


# Memory from the device's allocator, for later work of the stream; without a stream, for immediate use everywhere.
cdef Ref[Storage] allocate_with(DeviceBase device, Stream stream, size_t bytes) except *
