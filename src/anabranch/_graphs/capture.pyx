"""Captures: the operations of a stream become a graph."""

cimport cython
from cython.operator cimport dereference as deref

from anabranch._core.core cimport CCapture, Ref
from anabranch._core.graph cimport CGraph, Works, begin_capture, end_capture, take_accesses
from anabranch._device.device cimport as_device
from anabranch._graphs.graph cimport Graph
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_capture, current_state, enter_stream, leave_scope, use_capture

from anabranch._core.errors import text_of


class capture:  # noqa: N801
    """Record the operations of a stream as a graph, for the length of a ``with`` block. They do not run.

    The stream is current in the block. Another stream takes part from its first wait for captured work to the end of
    the block; operations of all other streams run at once. Streams and events make order, and hazards add or report
    missing order, as outside of a capture. The end of the block makes the graph ready to launch. The block belongs to
    one task; work of other threads, including their captures, is independent unless it uses a stream that takes part.

    Parameters
    ----------
    stream : Stream, optional
        None: the current stream; if that is the legacy stream, a stream of the capture's own.
    device : Device or str, optional
        Captures a stream of the capture's own on that device.

    Yields
    ------
    Graph

    Raises
    ------
    CaptureError
        At the line of an operation that cannot be captured: a wait of the host for captured work, a query, an await,
        an export, or an access by the host to memory that captured work writes; copies by the host (``array`` of
        unpinned data); the legacy stream; a wait for work outside the capture; a capture in a capture of the same
        task. This ends the capture, and every stream is usable again. If the block catches the error, its end raises
        it again, because there is no graph and later operations were not captured. An exception that leaves the block
        ends the capture, too, and reaches the caller.

    Notes
    -----
    Memory that is allocated in the block belongs to the graph, and each replay reuses it; the values that the last
    replay left there can be read afterwards.

    Examples
    --------
    >>> import anabranch as ab
    >>> a, s = ab.zeros(3), ab.Stream()
    >>> with ab.capture(s) as graph:
    ...     ab.fill(a, 7)
    >>> graph
    <Graph of 1 node on cpu:0, 0 replays>
    >>> graph.launch(s)
    >>> a.numpy()
    array([7., 7., 7.], dtype=float32)
    """

    __slots__ = ("_device", "_open", "_stream")

    def __init__(self, stream=None, device=None):
        self._stream = None if stream is None else as_stream(stream, None)
        self._device = None if device is None else as_device(device)
        if stream is not None and device is not None and self._stream.device is not self._device:
            raise ValueError(f"{stream!r} is not a stream of the device {self._device.alias}")
        self._open = []

    def __enter__(self):
        cdef CCapture* outer = current_capture()
        if outer != NULL:
            outer.refuse(b"a capture in a capture: a graph that is launched in one becomes a part of it")
        cdef Stream stream = self._stream
        if stream is None:
            if self._device is None:
                stream = current_stream_of(current_state(), -1)
            if stream is None or (stream.is_default and not stream.per_thread):
                stream = Stream(self._device if self._device is not None else stream.device, name="capture")
        cdef Graph graph = Graph.__new__(Graph)
        cdef Recording recording = Recording.__new__(Recording)
        graph._device = stream.device
        graph.state = "is being captured"
        recording.core = begin_capture(deref(stream.get()))
        recording.graph = graph
        enter_stream(recording, stream.device.ordinal, stream)
        use_capture(recording.core)
        recording.stream = stream
        self._open.append(recording)
        return graph

    def __exit__(self, kind, value, traceback):
        cdef Recording recording = self._open.pop()
        recording.end(value)

    def __repr__(self):
        return f"capture({self._stream or self._device or ''})"


@cython.final
cdef class Recording:
    cdef Ref[CCapture] core
    cdef Graph graph
    cdef Stream stream

    cdef int end(self, object error) except -1:
        cdef Ref[CCapture] none
        cdef Ref[Works] works
        cdef Ref[CGraph] graph
        use_capture(none)
        leave_scope(self)
        self.graph.fail("was not captured")
        if error is not None:
            self.core.get().abandon(text_of(error).encode(errors="backslashreplace"))
            return 0
        graph = end_capture(deref(self.core.get()), works)
        return self.graph.fill(graph, works, take_accesses(deref(graph.get())))
