"""The core's recorded operations, as Python objects."""

from bisect import bisect_right
from time import monotonic

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CStream, Point, Ref, Trace, TracedOperation, c_correlate, check_fork, host_function_stream, now_nanoseconds,
    translate)
from anabranch._core.tracing cimport kind_of, name_of
from anabranch._device.device cimport device_of
from anabranch._stream.current cimport stream_of_record
from anabranch._task.site cimport place_of

from anabranch._core.core import finalizing
from anabranch._trace.operation import Operation

cdef extern from *:
    """
    static anabranch::Ref<anabranch::Trace> make_trace() { return anabranch::make_ref<anabranch::Trace>(); }

    // Failed work is over, too. Its error is not raised here, and so does not count as told.
    static bool wait_until_over(anabranch::Stream& stream, anabranch::Point point, std::int64_t nanoseconds) {
      try {
        return stream.backend().synchronize(stream, point, std::chrono::nanoseconds(nanoseconds), nullptr);
      } catch (const anabranch::AsyncError&) {
        return true;
      }
    }

    // Whether an operation of the stream failed at or before the point. A driver's error fails the whole device, so
    // what had failed before it is not known.
    static bool has_failed(anabranch::Stream& stream, anabranch::Point point) {
      try {
        stream.backend().query(stream, point);
      } catch (const anabranch::AsyncError& error) {
        return error.failure()->code() == 0;
      } catch (const anabranch::Error&) {
      }
      return false;
    }

    static bool may_have_failed(const anabranch::Stream& stream) noexcept { return stream.may_have_failed(); }
    """
    Ref[Trace] make_trace()
    bint wait_until_over(CStream&, Point, int64_t) except +translate nogil
    bint has_failed(CStream&, Point) except +translate
    bint may_have_failed(const CStream&)

cdef int64_t signal_interval_ns = 20_000_000

cdef tuple _with_bytes = ("copy", "fill", "alloc", "free", "collective")


cdef object _correlated = None


@cython.unraisable_tracebacks(False)
cdef void _tell(uint64_t number) noexcept with gil:
    told = _correlated
    if told is not None:
        told(number)


cdef void _tell_without_lock(uint64_t number) noexcept nogil:
    _tell(number)


def correlate(function):
    """Install ``function(number)``, called before each traced operation, and with 0 after it; None removes it."""
    global _correlated
    _correlated = function
    if function is None:
        c_correlate.store(NULL)
    else:
        c_correlate.store(_tell_without_lock)


@cython.final
cdef class Recording:
    """Records the operations of all threads between `start` and `stop`."""

    cdef Ref[Trace] core

    def __cinit__(self):
        self.core = make_trace()

    def start(self):
        """Start or resume recording."""
        self.core.get().start()

    def stop(self):
        """Stop recording until the next `start`."""
        self.core.get().stop()

    @property
    def began(self):
        """When the first `start` was, in nanoseconds of the host's steady clock."""
        return self.core.get().began()

    def __len__(self):
        return self.core.get().operations().size()

    def operations(self, double patience=float("inf"), measure=None):
        """Wait until the recorded operations are completed; return them in the order of enqueueing.

        Operations that are pending after `patience` seconds are cut off there. `measure` returns begin and end, in
        nanoseconds, of operations that were measured elsewhere, by their numbers.
        """
        cdef vector[TracedOperation] traced = self.core.get().operations()
        cdef int64_t began = self.core.get().began()
        cdef size_t i
        _wait_for(traced, patience)
        cdef double now = (now_nanoseconds() - began) * 1e-6 if patience != float("inf") else -1
        measured = {} if measure is None else measure()
        streams = {}        # by address of the core's stream: stream, its points and operations, the last one's end
        found = []
        for i in range(traced.size()):
            found.append(_operation(traced[i], began, streams, now, measured))
        return found


cdef int _wait_for(const vector[TracedOperation]& traced, double patience) except -1:
    cdef CStream* stream
    cdef size_t i
    cdef double deadline = monotonic() + patience
    # Only the newest operation of each stream, going backwards.
    seen = set()
    for i in range(traced.size(), 0, -1):
        stream = traced[i - 1].stream.get()
        if stream == NULL or traced[i - 1].point == 0 or <uintptr_t>stream in seen:
            continue
        seen.add(<uintptr_t>stream)
        _wait_for_one(stream, traced[i - 1].closed, deadline)
    return 0


cdef int _wait_for_one(CStream* stream, Point point, double deadline) except -1:
    cdef int64_t left
    cdef bint over
    # A host function need not wait for what came before it, and must not for itself.
    if stream == host_function_stream():
        return 0
    while not finalizing():
        left = <int64_t>(min(max(0.0, deadline - monotonic()), signal_interval_ns * 1e-9) * 1e9)
        with nogil:
            over = wait_until_over(deref(stream), point, left)
        if over or left == 0:
            return 0
        PyErr_CheckSignals()
        check_fork()
    return 0


cdef object _operation(const TracedOperation& traced, int64_t began, dict streams, double now, dict measured):
    cdef CStream* source = traced.source.get()
    kind = kind_of(traced)
    file, line = place_of(traced.site)
    traced.span.get().read_times()
    stream, points, operations, last = None, None, None, 0.0
    if traced.stream.get() != NULL:
        entry = streams.get(<uintptr_t>traced.stream.get())
        if entry is None:
            entry = streams[<uintptr_t>traced.stream.get()] = [stream_of_record(traced.stream), [], [], 0.0]
        stream, points, operations, last = entry
    if traced.span.get().number in measured:
        begin, end = ((nanoseconds - began) * 1e-6 for nanoseconds in measured[traced.span.get().number])
    else:
        begin = max(0, traced.span.get().begin - began) * 1e-6 if traced.span.get().begin != 0 else max(last, now)
        end = max(begin, (traced.span.get().end - began) * 1e-6 if traced.span.get().end != 0 else now)
    waited_for = None
    if source != NULL and <uintptr_t>source in streams:
        _, others, candidates, _ = streams[<uintptr_t>source]
        place = bisect_right(others, traced.source_point)
        waited_for = candidates[place - 1] if place else None
    failed = skipped = False
    if stream is not None and traced.point != 0 and may_have_failed(deref(traced.stream.get())):
        skipped = has_failed(deref(traced.stream.get()), traced.point - 1)
        failed = not skipped and has_failed(deref(traced.stream.get()), traced.point)
    operation = Operation(
        kind=kind, name=name_of(traced), stream=stream, device=device_of(traced.backend),
        begin=begin, end=end, file=file, line=line, added=traced.added,
        nbytes=traced.bytes if kind in _with_bytes else None, source=waited_for,
        failed=failed, skipped=skipped)
    if stream is not None and traced.point != 0:
        points.append(traced.point)
        operations.append(operation)
        entry[3] = end
    return operation
