"""Streams created outside this library."""

from anabranch._device.device cimport DeviceBase, as_device

from anabranch._device.device import devices


cdef object handle_of(object obj):
    if isinstance(obj, bool):
        raise TypeError("a stream handle is an int, not bool")
    if isinstance(obj, int):
        handle = obj
    else:
        protocol = getattr(type(obj), "__cuda_stream__", None)
        if protocol is None:
            raise TypeError(
                f"{type(obj).__name__} is no stream: it is neither an int handle nor has it __cuda_stream__")
        try:
            answer = obj.__cuda_stream__()
        except Exception as error:
            raise TypeError(f"{type(obj).__name__}.__cuda_stream__() failed: {error}") from error
        if (not isinstance(answer, tuple) or len(answer) != 2
                or not all(isinstance(part, int) and not isinstance(part, bool) for part in answer)):
            raise TypeError(f"{type(obj).__name__}.__cuda_stream__() must return (version, handle), not {answer!r}")
        version, handle = answer
        if version != 0:
            raise TypeError(
                f"{type(obj).__name__} speaks version {version} of __cuda_stream__; this library knows version 0")
    if not 0 <= handle < 2**64:
        raise ValueError(f"{handle} is not a stream handle")
    return handle or (0 if isinstance(obj, int) else 1)


cdef DeviceBase owner_of_stream(object obj, object handle):
    # The current device, or the GPU that has the object's stream if the current device has not.
    cdef DeviceBase current = as_device(None)
    cdef DeviceBase other
    if isinstance(obj, int) or handle <= 2:
        return current
    for other in [current, *devices("cuda")]:
        try:
            other.backend.find_stream(handle)
        except ValueError:
            continue
        return other
    return current
