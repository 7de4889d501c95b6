from anabranch._core cimport CStream, Ref
from anabranch._device cimport DeviceBase
from anabranch._stream cimport Stream

# The stream for what a user may pass as one: a Stream, or None for the current one of `device` (None: the
# current device).
cdef Stream as_stream(object stream, DeviceBase device)
# A device's current stream; of the current device for a negative ordinal.
cdef Stream current_stream_of(int ordinal)
cdef Stream default_stream_of(DeviceBase device)

# A Stream for the core's; None for none.
cdef Stream stream_of_record(const Ref[CStream]& record)
