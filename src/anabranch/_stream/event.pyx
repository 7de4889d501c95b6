"""Events."""

import warnings

cimport cython
from cython.operator cimport dereference as deref
from libcpp.optional cimport optional

from anabranch._stream import awaitable

from anabranch._core cimport core
from anabranch._core.core cimport (
    CEvent, EventOptions, HazardMode, Record, Ref, checks_begun, elapsed_milliseconds, synchronize_point,
)
from anabranch._core.explore cimport ask, exploring
from anabranch._device.device cimport as_device
from anabranch._hazards.ordering cimport observe_record, refuse_own_wait_for
from anabranch._stream.current cimport as_stream
from anabranch._stream.host_threads cimport notification
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state, current_task

from anabranch._core.errors import ClosedError, EventError

cdef extern from *:
    """
    static anabranch::Ref<anabranch::Event> make_event(anabranch::Backend& backend, const
    anabranch::EventOptions& options) {
      return anabranch::make_ref<anabranch::Event>(backend, options);
    }
    static bool knows(anabranch::Stream& stream, const anabranch::Past& past) {
      return stream.lane().past().clock.covers(past.lane, past.count);
    }
    """
    bint _knows "knows"(core.CStream&, const core.Past&) nogil
    Ref[CEvent] make_event(core.CBackend&, const EventOptions&) nogil


cdef int ask_record(Record record) except -1:
    if record.stream.get() != NULL and record.stream.get().capture() == NULL:
        with nogil:
            ask(deref(record.stream.get()), record.point)
    return 0


@cython.final
cdef class Event:
    """Event(enable_timing=False, blocking=False, interprocess=False, *, device=None)\n--\n
    A marker in a stream: complete when everything enqueued in that stream before it is complete.

    Recording again replaces the record; waits and awaits keep the record that they found. An event never
    recorded is complete. Every method is atomic and may be called from any thread.

    Parameters
    ----------
    enable_timing : bool
        Whether records have a time, for `elapsed_time`.
    blocking : bool
        Whether `synchronize` sleeps from the start. On CUDA it otherwise spins for the first fraction of a
        millisecond; on the CPU it always sleeps.
    interprocess : bool
        Whether the driver lets other processes open the event. No call here exports or opens one.
    device : Device or str, optional
        The device whose streams can record it. None: the current device.

    Attributes
    ----------
    device : Device
        On whose streams it can be recorded.

    Raises
    ------
    ValueError
        For timing together with interprocess.

    Examples
    --------
    >>> import anabranch as ab
    >>> begin, end = ab.Event(enable_timing=True), ab.Event(enable_timing=True)
    >>> begin.record()
    >>> a = ab.zeros(1000)
    >>> end.record()
    >>> begin.elapsed_time(end) >= 0
    True
    """

    def __cinit__(self, enable_timing=False, blocking=False, interprocess=False, *, device=None):
        if enable_timing and interprocess:
            raise ValueError("an interprocess event cannot have timing")
        cdef EventOptions options
        options.timing = bool(enable_timing)
        options.blocking = bool(blocking)
        options.interprocess = bool(interprocess)
        self.device = as_device(device)
        core.check_fork()
        self.core = make_event(deref(self.device.backend), options)

    cdef CEvent* refuse(self) except NULL:
        if self._closed:
            raise ClosedError(f"{self!r} is closed")
        core.check_fork()
        return self.core.get()

    cdef int record_on(self, Stream stream) except -1:
        if checks_begun() and current_state().mode == <int>HazardMode.check:
            self.note_record(stream)
        self.get().record(deref(stream.get()), &current_task().lane)
        return 0

    cdef int note_record(self, Stream stream) except -1:
        cdef Record last = self.get().last()
        cdef bint covered = last.stream.get() == NULL or last.stream.get() == stream.get()
        self.lost = not (covered or self.waited or _knows(deref(stream.get()), last.past))
        self.waited = False
        return 0

    cdef int note_wait(self) except -1:
        self.waited = True
        if self.get().last().stream.get() == NULL:
            warnings.warn(f"{self!r} is waited for, but was never recorded: the wait does nothing", RuntimeWarning, 1)
        elif self.lost:
            warnings.warn(
                f"{self!r} was recorded again, on another stream, between its first record and this wait, which is for "
                "the second only", RuntimeWarning, 1)
        return 0

    cdef int wait_on(self, Stream stream) except -1:
        if checks_begun() and current_state().mode == <int>HazardMode.check:
            self.note_wait()
        self.get().wait(deref(stream.get()), &current_task().lane)
        return 0

    @property
    def handle(self):
        """The driver's handle of the last record: on CUDA a ``CUevent``, created if there is no record yet.

        Valid for the lifetime of the event; a new record may change it. After a gate or a host function the driver
        has the record only once the stream has reached it.
        """
        return self.get().handle()

    @property
    def closed(self):
        """Whether `close` was called."""
        return self._closed

    @property
    def enable_timing(self):
        """Whether the event was made with timing."""
        return self.get().options().timing

    def close(self):
        """Release the event. Waits already made on it stay valid. Closing again does nothing."""
        # The object releases the record, not `close`: another thread may be using it.
        self._closed = True

    def record(self, stream=None):
        """Put the marker into a stream.

        Parameters
        ----------
        stream : Stream, optional
            None: the current stream of the event's device.

        Raises
        ------
        DeviceError
            If the stream is another device's.
        """
        self.record_on(as_stream(stream, self.device))

    def wait(self, stream=None):
        """Make later work of a stream start after the last record. Does not block.

        Parameters
        ----------
        stream : Stream, optional
            Of any device. None: the current stream of the current device.

        Raises
        ------
        CaptureError
            If the stream is captured and the record was made outside of its capture.
        """
        self.wait_on(as_stream(stream, None))

    def query(self):
        """Return whether the last record is complete. Does not block.

        Raises
        ------
        KernelError
            If the work before it failed.
        """
        if exploring():
            ask_record(self.get().last())
        if not self.get().query(current_task()):
            return False
        self.waited = True
        return True

    def synchronize(self):
        """Block the host until the last record, as of this call, is complete.

        Releases the interpreter lock; Ctrl-C interrupts it.

        Raises
        ------
        KernelError
            If the work before it failed.
        """
        cdef Record record = self.get().last()
        if record.stream.get() != NULL:
            refuse_own_wait_for(record.past)
            synchronize_point(record.stream.get(), record.point, record.marker.get())
            self.waited = True
            observe_record(record)

    def __await__(self):
        """Wait, without blocking the event loop, until the last record, as of this call, is complete."""
        cdef Record record = self.get().last()
        return awaitable.until([] if record.stream.get() == NULL else [notification(record)])

    def elapsed_time(self, Event end not None):
        """Return the milliseconds from this event's last record to another's. Waits for both.

        Raises
        ------
        EventError
            If either was made without timing or never recorded; the message says which. Also for events of two
            GPUs, which have no common clock.
        """
        cdef optional[double] known = self.get().elapsed(deref(end.get()), current_task())
        if known.has_value():
            return known.value()
        cdef Record first = _timed(self, "begin")
        cdef Record last = _timed(end, "end")
        synchronize_point(first.stream.get(), first.point, first.marker.get())
        synchronize_point(last.stream.get(), last.point, last.marker.get())
        observe_record(first)
        observe_record(last)
        return elapsed_milliseconds(first, last)

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; wait for it here, and tell the other process then")

    def __repr__(self):
        if self._closed:
            return f"<Event of {self.device.alias}, closed>"
        options = self.core.get().options()
        flags = "".join(
            f", {name}"
            for name, on in (
                ("timing", options.timing), ("blocking", options.blocking), ("interprocess", options.interprocess))
            if on
        )
        return f"<Event of {self.device.alias}{flags}>"


cdef Record _timed(Event event, str role) except *:
    cdef Record record = event.get().last()
    if not event.core.get().options().timing:
        raise EventError(f"the {role} event {event!r} has no timing; create it with Event(enable_timing=True)")
    if record.stream.get() == NULL:
        raise EventError(f"the {role} event {event!r} was never recorded")
    return record
