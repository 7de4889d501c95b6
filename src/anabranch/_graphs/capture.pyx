"""Captures: what is put into a stream becomes a graph."""

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
    """Record what is put into a stream as a graph, for the length of a ``with`` block. Nothing of it runs.

    The stream is current in the block. Other streams take part once they wait for captured work, and until the end;
    what goes to any other stream runs at once. Order is that of streams and events, and hazards add or report what
    is missing, as they do outside. At the end of the block the graph is made ready to launch. The block is one task's;
    what other threads do meanwhile, captures among it, does not meet it unless they use a stream that takes part.

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
        At the line of what cannot be captured: a wait of the host for captured work, a query, an await, an export, or
        a host's look at what captured work writes; the host's own copies (``array`` of data that is not pinned); the
        legacy stream; a wait for work from outside; a capture in a capture of the same task. The capture then has
        ended, and every stream is usable. A block that catches it raises it again at its end, since there is no graph
        and what came after was not captured. An exception of the block ends the capture, too, and is what the caller
        sees.

    Notes
    -----
    Memory that is allocated in the block is the graph's own, used again by each replay; what the last one left in it
    can be read afterwards.

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
