from cpython.object cimport PyObject

from anabranch._core.core cimport CStream, Ref
from anabranch._device.device cimport DeviceBase
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState

# The stream for a user's argument: a Stream, or None for the current stream of `device` (None: the current device).
cdef inline Stream as_stream(object stream, DeviceBase device):
    return <Stream>stream if type(stream) is Stream else current_instead(stream, device)

cdef Stream current_instead(object stream, DeviceBase device)

# The current stream of a device; a negative ordinal selects the current device.
cdef inline Stream current_stream_of(TaskState state, int ordinal):
    if ordinal < 0:
        ordinal = state.device
    if state.ordinal == ordinal and state.stream is not None:
        return <Stream>state.stream
    return outer_stream_of(state, ordinal)

# The same, borrowed from the state or from the devices' permanent streams; use it at once.
cdef inline PyObject* borrowed_stream_of(TaskState state, int ordinal) except NULL:
    cdef Stream stream
    if ordinal < 0:
        ordinal = state.device
    if state.ordinal == ordinal and state.stream is not None:
        return <PyObject*>state.stream
    stream = outer_stream_of(state, ordinal)
    return <PyObject*>stream

cdef Stream outer_stream_of(TaskState state, int ordinal)
cdef Stream default_stream_of(DeviceBase device)

# The Stream object for a core stream; None for null.
cdef Stream stream_of_record(const Ref[CStream]& record)
