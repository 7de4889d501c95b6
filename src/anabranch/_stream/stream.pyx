"""Streams."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t
from libcpp.vector cimport vector

from anabranch._stream import awaitable, display

from anabranch._core cimport core
from anabranch._core.core cimport (
    CCapture, CStream, Record, Ref, StreamOptions, StreamRole, capturing, forked, recorder_of, synchronize_point)
from anabranch._core.explore cimport exploring
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._hazards.ordering cimport (
    Observation, observation_of, observe, past_within, refuse_own_wait_for, wait_for_stream)
from anabranch._stream.event cimport Event
from anabranch._stream.external cimport handle_of, owner_of_stream
from anabranch._stream.host_threads cimport notification, submit_call
from anabranch._task.context cimport current_capture, current_task, enter_stream, leave_scope, use_stream

from anabranch._core.errors import ClosedError


# Passed instead of a device: the object wraps an existing stream.
cdef object _another = object()


cdef Stream stream_over(DeviceBase device, const Ref[CStream]& record, uintptr_t key):
    cdef Stream stream = Stream.__new__(Stream, _another)
    stream.device, stream.record, stream.key = device, record, key
    record.get().add_handle()
    stream._name = record.get().name().decode("utf-8", "surrogatepass") or None
    return stream


@cython.final
cdef class Stream:
    """Stream(device=None, *, priority=0, non_blocking=True, name=None)\n--\n
    A queue of operations that run in the order in which they were put in; those of two streams run in any order.

    Operations are enqueued and run later: kernels, copies, fills, host functions. As a context manager the
    stream is its device's current stream, and its device the current one, for the block and this task; what
    was there is restored after, also on error. Safe to use from any thread: each method is atomic, a use that meets
    `close` works or raises ClosedError, and what one thread enqueues stays in its order.

    Parameters
    ----------
    device : Device or str, optional
        None: the current device.
    priority : int
        Lower numbers come first. Clamped to ``device.priority_range``.
    non_blocking : bool
        False: in order with the device's legacy default stream, as CUDA's blocking streams are.
    name : str, optional
        For messages and pictures.

    Attributes
    ----------
    device : Device
        Whose stream it is.

    Raises
    ------
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import anabranch as ab
    >>> s = ab.Stream("cpu", name="upload")
    >>> s
    <Stream 'upload' on cpu:0>
    """

    def __cinit__(self, device=None, *others, priority=0, non_blocking=True, name=None):
        if device is _another:
            return
        if others:
            raise TypeError(
                f"Stream takes only the device by position; name the rest: Stream({device!r}, priority={others[0]!r})")
        if type(priority) is not int and (isinstance(priority, bool) or not hasattr(priority, "__index__")):
            raise TypeError(f"priority is an int, not {type(priority).__name__}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name is a str or None, not {type(name).__name__}")
        cdef StreamOptions options
        self.device = as_device(device)
        core.check_fork()
        options.priority = max(-(2**30), min(2**30, priority))
        options.non_blocking = bool(non_blocking)
        if name is not None:
            options.name = name.encode("utf-8", "surrogatepass")
        self._name = name
        self.record = self.device.backend.create_stream(options)
        self.record.get().add_handle()
        self.key = self.record.get().handle()

    @staticmethod
    def from_external(obj, device=None):
        """Wrap a stream that someone else made.

        Parameters
        ----------
        obj : int or object with ``__cuda_stream__``
            A handle, or a stream of this or another library. It is kept alive; closing the wrapper leaves it alone.
        device : Device or str, optional
            Whose stream it is. None: for a plain handle the current device, for an object the one that it is of.

        Raises
        ------
        TypeError
            If the object does not speak ``__cuda_stream__``, or not properly.
        ValueError
            If no device, or not the one given, has a stream of that handle.

        Notes
        -----
        The handle 0 of an object is the legacy default stream, as other libraries name it.
        """
        cdef DeviceBase owner
        if isinstance(obj, Stream):
            owner = (<Stream>obj).device
            if device is not None and as_device(device) is not owner:
                raise ValueError(f"{obj!r} is not a stream of {as_device(device).alias}")
            (<Stream>obj).get()
            stream = stream_over(owner, (<Stream>obj).record, (<Stream>obj).key)
            stream.per_thread = (<Stream>obj).per_thread
        else:
            handle = handle_of(obj)
            owner = as_device(device) if device is not None else owner_of_stream(obj, handle)
            stream = stream_over(owner, owner.backend.find_stream(handle), handle)
            stream.per_thread = handle == 2
            stream.external = True
        stream.keeper = obj
        return stream

    cdef void _release(self) noexcept:
        if self.record.get() == NULL or forked():
            return
        self.record.get().remove_handle()
        if self.external:  # from now on its owner may destroy the stream
            self.record.get().backend().release_external(deref(self.record.get()))

    def __dealloc__(self):  # any Python thread, with the interpreter lock and none of the core's; does not block
        if not self._closed:
            self._release()

    cdef int refuse(self) except -1:
        if self._closed:
            raise ClosedError(f"{self!r} is closed")
        core.check_fork()
        return 0

    cdef CStream* special(self) except NULL:
        self.refuse()
        cdef CStream* stream = self.record.get()
        cdef CCapture* capture
        if self.per_thread:
            # The thread keeps its queue alive beyond this call.
            stream = self.device.backend.default_stream(StreamRole.per_thread).get()
        if not capturing():
            return stream
        if stream.role() == StreamRole.legacy:
            capture = current_capture()
            if capture != NULL:
                capture.refuse(b"the legacy stream cannot be used in a capture; give the work a captured stream")
        return &recorder_of(deref(stream))

    @property
    def priority(self):
        """The priority in force."""
        self.check()
        return self.record.get().priority()

    @property
    def non_blocking(self):
        """Whether the stream has no order with the legacy default stream."""
        self.check()
        return self.record.get().non_blocking()

    @property
    def name(self):
        """The name given, or None."""
        return self._name

    @property
    def handle(self):
        """The driver's handle of the stream; 1 is the legacy and 2 the per-thread default stream.

        Handles of different devices may be equal.
        """
        self.check()
        return self.key

    @property
    def is_capturing(self):
        """Whether a capture records the stream's operations."""
        self.check()
        return capturing() and self.get().capture() != NULL

    @property
    def closed(self):
        """Whether `close` was called."""
        return self._closed

    def __cuda_stream__(self):
        """Return ``(0, handle)``, as the protocol of the CUDA libraries asks.

        A CPU stream's handle means something to this library alone.

        Raises
        ------
        CaptureError
            While the stream is captured: what another library puts into it would run at once.
        """
        if self.is_capturing:
            self.get().capture().refuse(b"another library's work cannot be captured")
        return 0, self.handle

    def close(self):
        """Release the stream without blocking. Work already enqueued completes; closing again does nothing.

        Raises
        ------
        ValueError
            For a default stream.
        """
        if self.is_default:
            raise ValueError(f"{self!r} cannot be closed: it is a default stream, there for as long as its device")
        # The object releases the record, not `close`: another thread may be using it.
        with cython.critical_section(self):
            if not self._closed:
                self._closed = True
                self._release()

    def query(self):
        """Return whether everything enqueued by now is complete. Does not block.

        Raises
        ------
        KernelError
            If the work failed.
        """
        cdef CStream* stream = self.get()
        cdef Observation observation = observation_of(deref(stream), deref(current_task()))
        cdef vector[Record] records
        cdef size_t i
        if stream.role() != StreamRole.legacy and not exploring():
            if not stream.backend().query(deref(stream), stream.backend().newest(deref(stream))):
                return False
        else:
            records = stream.backend().frontier(deref(stream))
            for i in range(records.size()):
                if exploring():
                    notification(records[i]).ask()
                if not records[i].stream.get().backend().query(deref(records[i].stream.get()), records[i].point):
                    return False
        observe(observation)
        return True

    def synchronize(self):
        """Block the host until everything enqueued by now is complete.

        Releases the interpreter lock; Ctrl-C interrupts it.

        Raises
        ------
        KernelError
            If the work failed.
        """
        cdef CStream* stream = self.get()
        cdef Observation observation = observation_of(deref(stream), deref(current_task()))
        cdef vector[Record] records
        cdef size_t i
        cdef bint several = stream.capture() != NULL or stream.role() == StreamRole.legacy
        if several or exploring() or not stream.backend().query(deref(stream), stream.backend().newest(deref(stream))):
            refuse_own_wait_for(observation.past)
            records = stream.backend().frontier(deref(stream))
            for i in range(records.size()):
                synchronize_point(records[i].stream.get(), records[i].point)
        observe(observation)

    def __await__(self):
        """Wait, without blocking the event loop, until everything enqueued by now is complete."""
        cdef CStream* stream = self.get()
        cdef vector[Record] records = stream.backend().frontier(deref(stream))
        cdef size_t i
        for i in range(records.size()):
            records[i].past = past_within(deref(stream))
        return awaitable.until([notification(records[i]) for i in range(records.size())])

    def record_event(self, Event event=None):
        """Record an event at the stream's current end.

        Parameters
        ----------
        event : Event, optional
            None: a new one, without timing. One of another device is a DeviceError.

        Returns
        -------
        Event
            The event recorded.
        """
        if event is None:
            event = Event(device=self.device)
        event.record_on(self)
        return event

    def wait_event(self, event):
        """Make later work of this stream start after the event's last record. Does not block.

        The event may be of another device. A later record does not move the wait; an event never recorded is complete.
        In a capture, waiting for a record from outside of it is a CaptureError.
        """
        if not isinstance(event, Event):
            raise TypeError(f"event is an Event, not {type(event).__name__}")
        (<Event>event).wait_on(self)

    def wait_stream(self, other):
        """Make later work of this stream start after the current work of `other`. Does not block.

        The other stream may be of another device. In a capture, waiting for a stream outside of it is a CaptureError.
        """
        if not isinstance(other, Stream):
            raise TypeError(f"other is a Stream, not {type(other).__name__}")
        cdef CStream* stream = self.get()
        cdef CStream* target = (<Stream>other).get()
        if stream != target:
            wait_for_stream(deref(stream), deref(target), deref(current_task()))

    def submit(self, fn, /, *args, reads=(), writes=(), **kwargs):
        """Call a host function in stream order: after all earlier operations and before all later ones.

        It runs on a thread of its own, which starts with the default stream and device, so functions of
        several streams run at the same time, and it may enqueue work and wait for other streams. If it
        raises, its future fails and nothing else.

        In a capture it becomes a node of the graph: each replay calls it. The future is that of the first
        replay, and an exception fails the stream of its replay, with a KernelError.

        Parameters
        ----------
        fn : callable
        *args, **kwargs
            Passed to it.
        reads, writes : iterable of Array
            The arrays that the function accesses. Hazards treat the accesses as the stream's: the function comes after
            conflicting operations, and later ones after the function. An array of `writes` may also be read.

        Returns
        -------
        concurrent.futures.Future
            With the result. Cancelled before the stream comes to it, the function is not called. If the
            stream has failed by then, so has the future.
        """
        if not callable(fn):
            raise TypeError(f"fn must be callable, not {type(fn).__name__}")
        return submit_call(Ref[CStream].share(self.get()), fn, args, kwargs, reads, writes)

    def bridge(self, /, *libraries, sync_enter=True, sync_exit=True):
        """Make this stream the current one of other libraries, too, for a ``with`` block: `anabranch.bridge`."""
        from anabranch.interop._bridge import bridge

        return bridge(self, *libraries, sync_enter=sync_enter, sync_exit=sync_exit)

    def use(self):
        """Make this the current stream of its device, and its device the current one, for this task from now on."""
        self.check()
        use_stream(self.device.ordinal, self)

    def __enter__(self):
        self.check()
        enter_stream(self, self.device.ordinal, self)
        return self

    def __exit__(self, kind, value, traceback):
        leave_scope(self)

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        cdef Stream stream = other
        same = self.key == stream.key and self.device is stream.device
        return stream is self or same and not (self._closed or stream._closed)

    def __hash__(self):
        return hash((self.device.alias, self.key))

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; hand over its device, and make a Stream there")

    def _repr_html_(self):
        return display.html(self)

    def __repr__(self):
        name = f"{self._name!r} " if self._name else f"{self.key:#x} "
        priority = 0 if self._closed else self.record.get().priority()
        state = ", closed" if self._closed else f", priority {priority}" if priority else ""
        return f"<Stream {name}on {self.device.alias}{state}>"
