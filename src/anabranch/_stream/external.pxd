from anabranch._device.device cimport DeviceBase

# The handle that an int or `__cuda_stream__` gives. Raises TypeError or ValueError.
cdef object handle_of(object obj)
# The device that most likely owns the stream.
cdef DeviceBase owner_of_stream(object obj, object handle)
