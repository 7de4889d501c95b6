"""The arguments of a launch, as the launch paths see them."""

from cpython.object cimport PyObject

from anabranch._device.device cimport DeviceBase, as_device
from anabranch._stream.current cimport as_stream, borrowed_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState


# Borrowed all: the caller holds them until the launch returns. Counting references costs as much as the rest of a short
# launch does where threads share objects and no lock keeps them apart.
cdef struct CallArgs:
    PyObject** args         # of the kernel
    Py_ssize_t count
    PyObject* stream        # NULL: none, like those below
    PyObject* device
    PyObject* block


# The device that was named, if any, by itself or by the stream. Raises ValueError if both were, and differ.
cdef inline DeviceBase named_device(const CallArgs* given):
    cdef DeviceBase device = None
    if given.device != NULL:
        device = as_device(<object>given.device)
    if given.stream == NULL:
        return device
    cdef Stream stream = as_stream(<object>given.stream, None)
    if device is not None and device is not stream.device:
        raise ValueError(f"{stream!r} is not a stream of the device {device.alias}")
    return stream.device


# The stream that was named, else the current one of the device; None: of the current device. Borrowed as well.
cdef inline PyObject* stream_of(const CallArgs* given, TaskState state, DeviceBase where) except NULL:
    if given.stream != NULL:
        return given.stream
    return borrowed_stream_of(state, -1 if where is None else where.ordinal)


cdef inline tuple args_of(const CallArgs* given):
    return tuple([<object>given.args[i] for i in range(given.count)])
