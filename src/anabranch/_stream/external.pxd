from anabranch._device.device cimport DeviceBase

# The handle that an int is, or that an object tells by `__cuda_stream__`. Raises TypeError, ValueError.
cdef object handle_of(object obj)
# Whose stream it probably is.
cdef DeviceBase owner_of_stream(object obj, object handle)
