from anabranch._core.core cimport Ref, Storage
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream


# Memory from the allocator that was set for the device, for work that the stream does from now on; with no stream, for
# everybody at once.
cdef Ref[Storage] allocate_with(DeviceBase device, Stream stream, size_t bytes) except *
