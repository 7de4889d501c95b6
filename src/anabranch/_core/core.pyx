"""What all extension modules share: waiting, and the beginning and the end of the process."""

import atexit
import sys
import threading

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from cython.operator cimport dereference as deref
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CStream, Marker, Point, Use, all_activity, c_keep_activity, check_fork, host_function_stream, nanoseconds,
    runtime_options, set_free_threaded, stop_devices,
)

from anabranch._core.errors import Error

# How long a wait goes on before signals are looked at. Python's own handler has run by then; only the Python-
# level one is still due.
cdef int signal_interval_ns = 20_000_000

cdef bint _exiting = False
cdef unsigned long _exiting_thread = 0

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    static constexpr bool is_free_threaded = true;
    #else
    static constexpr bool is_free_threaded = false;
    #endif
    """
    bint is_free_threaded

set_free_threaded(is_free_threaded)


cdef int synchronize_point(CStream* stream, Point point, Marker* marker=NULL) except -1:
    cdef bint reached
    if stream == host_function_stream() and not stream.backend().query(deref(stream), point):
        raise Error("a host function cannot wait for itself or for what comes after it in its own stream")
    if _exiting and PyThread_get_thread_ident() == _exiting_thread:
        # A later exit handler than ours. Others that ask a driver wait for good below, since it ends under them.
        if stream.backend().query(deref(stream), point, marker):
            return 0
        raise stopped("this work will not complete")
    while True:
        with nogil:
            reached = stream.backend().synchronize(deref(stream), point, nanoseconds(signal_interval_ns), marker)
        if reached:
            return 0
        PyErr_CheckSignals()
        check_fork()
        if _exiting:
            raise stopped("this work will not complete")


cdef int settle_point(CStream* stream, CStream* target, Point point) except -1:
    cdef bint known = target == host_function_stream() or stream.backend().settle(deref(target), point, nanoseconds(0))
    while not known:
        with nogil:
            known = stream.backend().settle(deref(target), point, nanoseconds(signal_interval_ns))
        PyErr_CheckSignals()
        check_fork()
        if _exiting:
            raise stopped("this work will not be enqueued")
    return 0


cdef int synchronize_uses(const vector[Use]& uses) except -1:
    cdef size_t i
    for i in range(uses.size()):
        # In a host function, what its own stream did before is done, and what it does later is not the
        # function's to wait for.
        if uses[i].stream.get() == host_function_stream():
            continue
        synchronize_point(uses[i].stream.get(), uses[i].point)
    return 0


cdef int pass_threads() except -1:
    if is_free_threaded:
        # It stops all of them for a moment, where the interpreter may.
        sys._current_frames()
    return 0


cdef bint per_thread_is_default() except -1:
    return runtime_options().per_thread_default


def default_stream_reason():
    """Return which default stream is in force, ``"legacy"`` or ``"per-thread"``, and why."""
    options = runtime_options()
    return "per-thread" if options.per_thread_default else "legacy", options.default_reason.decode()


def keep_activity(keep):
    """From now on keep, or do not keep, the activity of streams that end, for `activity`."""
    c_keep_activity(bool(keep))


def activity():
    """Return ``(device, stream, operations, busy_ms)`` for each stream that did something: those that live,
    and those kept.
    """
    return [
        (
            entry.device.decode(), entry.stream.decode("utf-8", "surrogatepass"),
            entry.activity.operations, entry.activity.busy_nanoseconds * 1e-6,
        )
        for entry in all_activity()
    ]


def finalizing():
    """Return whether the interpreter is on its way out."""
    return _exiting or sys.is_finalizing()


def stopped(text):
    """Return what a wait raises that could never end, since the interpreter is on its way out.

    In a daemon thread, which soon ends anyway, a SystemExit: who joins the thread goes on, and nothing is printed.
    """
    ident = threading.get_ident()
    if ident != _exiting_thread and any(thread.ident == ident for thread in threading.enumerate() if thread.daemon):
        return SystemExit(text)
    return Error(f"the interpreter is exiting and the devices have stopped; {text}")


def _stop():
    global _exiting, _exiting_thread
    _exiting_thread = PyThread_get_thread_ident()
    _exiting = True
    with nogil:
        stop_devices()


# Runs before modules are torn down, so that no worker runs compiled code or touches memory that is about to go.
atexit.register(_stop)
