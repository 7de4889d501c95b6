"""The default streams, and a task's current stream."""

from anabranch._core cimport core
from anabranch._core.core cimport CStream, Ref, StreamRole, forked, per_thread_is_default
from anabranch._core.immortal cimport make_immortal
from anabranch._device.device cimport DeviceBase, as_device, device_at, device_of
from anabranch._stream.stream cimport Stream, stream_over
from anabranch._task.context cimport TaskState, current_state, stream_in

# By device ordinal: the legacy, per-thread and default stream objects.
cdef dict _legacy = {}
cdef dict _per_thread = {}
cdef list _defaults = []


cdef Stream _default_object(dict known, DeviceBase device, StreamRole role):
    cdef Stream stream = known.get(device.ordinal)
    cdef Ref[CStream] record
    if stream is None:
        record = device.backend.default_stream(role)
        stream = stream_over(device, record, record.get().handle())
        stream.per_thread = role == StreamRole.per_thread
        stream.is_default = True
        make_immortal(stream)
        stream = known.setdefault(device.ordinal, stream)
    return stream


cdef Stream default_stream_of(DeviceBase device):
    if per_thread_is_default():
        return _default_object(_per_thread, device, StreamRole.per_thread)
    return _default_object(_legacy, device, StreamRole.legacy)


cdef Stream _first_stream_of(int ordinal):
    # The list grows once per device; two threads that fill it store the same objects.
    cdef DeviceBase device = device_at(ordinal)
    cdef Stream stream = default_stream_of(device)
    if len(_defaults) <= ordinal:
        _defaults[:] = [default_stream_of(device_at(i)) for i in range(ordinal + 1)]
    return stream


cdef Stream outer_stream_of(TaskState state, int ordinal):
    cdef object stream = stream_in(state, ordinal)
    if stream is not None:
        return <Stream>stream
    if ordinal < len(_defaults):
        return <Stream>_defaults[ordinal]
    return _first_stream_of(ordinal)


cdef Stream current_instead(object stream, DeviceBase device):
    if stream is None:
        return current_stream_of(current_state(), -1 if device is None else device.ordinal)
    raise TypeError(f"a stream is a Stream or None, not {type(stream).__name__}; wrap others with Stream.from_external")


def current_stream(device=None):
    """Return the current stream of a device for this task: where work goes that names no stream.

    Parameters
    ----------
    device : Device or str, optional
        None: the current device.

    Raises
    ------
    DeviceError
        For a device that does not exist.
    """
    if forked():
        core.check_fork()
    if device is None:
        return current_stream_of(current_state(), -1)
    return current_stream_of(current_state(), as_device(device).ordinal)


def legacy_stream(device=None):
    """Return the legacy default stream of a device, in order with every blocking stream of it.

    One object per device.

    Raises
    ------
    DeviceError
        For a device that does not exist.
    """
    core.check_fork()
    return _default_object(_legacy, as_device(device), StreamRole.legacy)


def per_thread_stream(device=None):
    """Return the per-thread default stream of a device: one object, with a queue of its own in each thread; a
    blocking stream.

    Raises
    ------
    DeviceError
        For a device that does not exist.
    """
    core.check_fork()
    return _default_object(_per_thread, as_device(device), StreamRole.per_thread)


def default_stream(device=None):
    """Return whichever of the two default streams of a device is the default.

    That is the per-thread one on a free-threaded build of Python, else the legacy one, unless the environment variable
    ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` is ``1`` or ``0``. It is read once, at first use.

    Raises
    ------
    DeviceError
        For a device that does not exist.
    """
    core.check_fork()
    return default_stream_of(as_device(device))


class ScopedStream:
    """A context manager that makes a stream current for the block and this task. With None it does nothing.

    One object serves one task at a time; each thread makes its own.

    Parameters
    ----------
    stream : Stream or None
    sync_enter : bool
        The stream waits for the one it replaces.
    sync_exit : bool
        At the end, the one it replaced waits for the stream.

    Attributes
    ----------
    stream : Stream or None
    sync_enter : bool
    sync_exit : bool
    """

    __slots__ = ("stream", "sync_enter", "sync_exit", "_replaced")

    def __init__(self, stream, sync_enter=True, sync_exit=False):
        self.stream = None if stream is None else as_stream(stream, None)
        self.sync_enter = sync_enter
        self.sync_exit = sync_exit
        self._replaced = []

    def __enter__(self):
        if self.stream is None:
            return None
        replaced = current_stream(self.stream.device)
        if self.sync_enter:
            self.stream.wait_stream(replaced)
        self.stream.__enter__()
        self._replaced.append(replaced)
        return self.stream

    def __exit__(self, kind, value, traceback):
        if self.stream is None:
            return
        replaced = self._replaced.pop()
        self.stream.__exit__(kind, value, traceback)
        if self.sync_exit and not self.stream.closed and not replaced.closed:
            replaced.wait_stream(self.stream)

    def __repr__(self):
        return f"ScopedStream({self.stream!r}, sync_enter={self.sync_enter}, sync_exit={self.sync_exit})"


cdef Stream stream_of_record(const Ref[CStream]& record):
    if record.get() == NULL:
        return None
    return stream_over(device_of(&record.get().backend().device()), record, record.get().handle())
