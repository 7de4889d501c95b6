"""Devices."""

from cython.operator cimport dereference as deref
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core cimport core
from anabranch._core.core cimport (
    CBackend, CCapture, CStream, Point, Ref, capturing, find_device, synchronize_point, throw_unraised, translate)
from anabranch._core.immortal cimport make_immortal
from anabranch._hazards.ordering cimport Observation, observation_of, observe
from anabranch._task.context cimport current_capture, current_state, current_task, enter_device, leave_scope

cdef extern from *:
    """
    static int device_count() { return static_cast<int>(anabranch::devices().size()); }
    static anabranch::Backend* backend_at(int ordinal) { return anabranch::devices()[ordinal]; }
    """
    int device_count() except +translate
    CBackend* backend_at(int ordinal) except +translate

cdef list _all = None


cdef class DeviceBase:
    @property
    def kind(self):
        """``"cpu"`` or ``"cuda"``."""
        return self.backend.capabilities().kind.decode()

    @property
    def index(self):
        """The device's number among those of its kind."""
        return self.backend.capabilities().index

    @property
    def name(self):
        """The name of the device according to the hardware or the system."""
        return self.backend.capabilities().name.decode()

    @property
    def total_memory(self):
        """The device's memory in bytes. CPU devices share the machine's equally."""
        return self.backend.capabilities().total_memory

    @property
    def free_memory(self):
        """Bytes that can be allocated now; memory whose last use is still under way is not counted."""
        core.check_fork()
        return self.backend.free_memory()

    @property
    def priority_range(self):
        """``(lowest, highest)`` priority of a stream; a lower number comes first."""
        capabilities = self.backend.capabilities()
        return capabilities.lowest_priority, capabilities.highest_priority

    @property
    def workers(self):
        """How many threads run kernels; 0 where the device schedules itself."""
        return self.backend.capabilities().workers

    def synchronize(self):
        """Block the host until everything enqueued on the device by now is complete.

        Releases the interpreter lock; Ctrl-C interrupts it. Of the memory freed by then a GPU keeps 2 GiB or a
        sixteenth of what it has, whichever is more, for later allocations; the rest goes back to the system.

        Raises
        ------
        KernelError
            If a stream of the device has failed. For one that was closed or dropped, only if nothing raised it before,
            and once: where several failed, each call raises the oldest of 16 at most.
        """
        core.check_fork()
        cdef CCapture* capture = current_capture() if capturing() else NULL
        if capture != NULL and (capture.exclusive() or capture.involves(deref(self.backend))):
            capture.refuse(b"the host cannot wait for a device in a capture")
        cdef vector[Ref[CStream]] streams = self.backend.streams()
        cdef vector[Point] points
        cdef vector[Observation] observations
        cdef size_t i
        for i in range(streams.size()):
            observations.push_back(observation_of(deref(streams[i].get()), deref(current_task())))
            points.push_back(self.backend.newest(deref(streams[i].get())))
        for i in range(streams.size()):
            synchronize_point(streams[i].get(), points[i], NULL, True)
        throw_unraised(deref(self.backend))
        for i in range(streams.size()):
            observe(observations[i])
        with nogil:
            self.backend.trim()

    def __enter__(self):
        enter_device(self, self.ordinal)
        return self

    def __exit__(self, kind, value, traceback):
        leave_scope(self)

    def __repr__(self):
        return f"Device({self.alias!r})"

    def __reduce__(self):
        return Device, (self.alias,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Device(DeviceBase):
    """A place where work runs and memory lives: one object per device, so ``Device("cpu") is Device("cpu:0")``.

    As a context manager it is the current device of this task for the block, and what was current is restored
    after. Safe to use from any thread.

    Parameters
    ----------
    device : str or Device, optional
        Such as ``"cpu"``, ``"cpu:1"``, ``"cuda:0"``; None for the current device.

    Attributes
    ----------
    alias : str
        The device's name in this package, such as ``"cpu:0"``.

    Raises
    ------
    DeviceError
        If there is no such device; the message names those that exist.

    Examples
    --------
    >>> Device("cpu")
    Device('cpu:0')
    """

    __slots__ = ()

    def __new__(cls, device=None):
        return as_device(device)

    def __init_subclass__(cls):
        raise TypeError("Device cannot be subclassed: there is one object per device")


cdef list _devices():
    global _all
    cdef DeviceBase device
    cdef int ordinal
    if _all is None:
        made = []
        for ordinal in range(device_count()):
            device = DeviceBase.__new__(Device)
            device.backend = backend_at(ordinal)
            device.ordinal = ordinal
            device.alias = f"{device.kind}:{device.index}"
            make_immortal(device)
            made.append(device)
        _all = _publish(made)
    return _all


_published = {}


cdef list _publish(list made):
    # Two threads may both have created the objects; the first to publish wins.
    return _published.setdefault("devices", made)


cdef DeviceBase device_at(int ordinal):
    return _devices()[ordinal]


cdef DeviceBase device_of(CBackend* backend):
    cdef DeviceBase device
    for device in _devices():
        if device.backend == backend:
            return device


cdef DeviceBase as_device(object device):
    cdef string alias
    if device is None:
        return device_at(current_state().device)
    if isinstance(device, DeviceBase):
        return device
    if isinstance(device, str):
        _devices()
        alias = device.encode()
        return device_of(&find_device(alias))
    hint = f"; as a str: 'cuda:{device}'" if type(device) is int and device >= 0 else ""
    raise TypeError(f"a device is a Device, a str such as 'cpu:0', or None, not {type(device).__name__}{hint}")


def devices(kind=None):
    """Return the devices there are, CPU devices first.

    Parameters
    ----------
    kind : str, optional
        ``"cpu"`` or ``"cuda"``: only those.

    Raises
    ------
    ValueError
        For another kind.
    ForkError
        In a forked child whose parent had used a device.
    """
    if kind not in (None, "cpu", "cuda"):
        raise ValueError(f"kind is 'cpu', 'cuda' or None, not {kind!r}")
    core.check_fork()
    return [device for device in _devices() if kind is None or device.kind == kind]


def current_device():
    """Return the current device of this task.

    Raises
    ------
    ForkError
        In a forked child whose parent had used a device.
    """
    core.check_fork()
    return device_at(current_state().device)


def synchronize(device=None):
    """Block the host until everything enqueued on a device by now is complete.

    Parameters
    ----------
    device : Device or str, optional
        None: every device that has been used.

    Raises
    ------
    DeviceError
        For a device that does not exist.
    KernelError, DriverError
        If work of the device failed.
    CaptureError
        If the task is capturing on the device.
    """
    if device is not None:
        return as_device(device).synchronize()
    core.check_fork()
    if _all is not None:
        for each in _all:
            each.synchronize()


class ScopedDevice:
    """A context manager that makes a device current for the block. With None it does nothing.

    Parameters
    ----------
    device : Device, str or None

    Attributes
    ----------
    device : Device or None
        The device given.
    """

    __slots__ = ("device",)

    def __init__(self, device):
        self.device = None if device is None else as_device(device)

    def __enter__(self):
        if self.device is not None:
            self.device.__enter__()
        return self.device

    def __exit__(self, kind, value, traceback):
        if self.device is not None:
            self.device.__exit__(kind, value, traceback)

    def __repr__(self):
        return f"ScopedDevice({self.device!r})"
