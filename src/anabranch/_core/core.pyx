"""Shared by all extension modules: waits, and the start and end of the process."""

import atexit
import sys
import threading

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from cython.operator cimport dereference as deref
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    Activity, CStream, Marker, Point, Use, check_fork, host_function_stream, nanoseconds, runtime_options,
    set_free_threaded, stop_devices, translate,
)

from anabranch._core.errors import Error

# Interval at which a wait handles signals: the C handler has already run, the Python-level handler is still due.
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

cdef extern from "anabranch/stream/stream.hpp" namespace "anabranch" nogil:
    cdef cppclass StreamActivity:
        string device
        string stream
        Activity activity
    void c_keep_activity "anabranch::keep_activity"(cbool)
    vector[StreamActivity] all_activity() except +translate

set_free_threaded(is_free_threaded)


cdef int refuse_own_wait(CStream* stream, Point point) except -1:
    if stream == host_function_stream() and not stream.backend().query(deref(stream), point):
        raise_own_wait()
    return 0


cdef int raise_own_wait() except -1:
    raise Error(
        "a host function cannot wait for itself or for what comes after it in its own stream: "
        "give the work that it needs another stream")


cdef int synchronize_point(CStream* stream, Point point, Marker* marker=NULL, bint whole_device=False) except -1:
    cdef bint reached
    refuse_own_wait(stream, point)
    if _exiting and PyThread_get_thread_ident() == _exiting_thread:
        # An exit handler that runs after ours. Waits of other threads block forever below, since the driver shuts down.
        if stream.backend().query(deref(stream), point, marker):
            return 0
        raise stopped("this work will not complete")
    while True:
        with nogil:
            if whole_device:
                reached = stream.settle(point, nanoseconds(signal_interval_ns))
            else:
                reached = stream.backend().synchronize(deref(stream), point, nanoseconds(signal_interval_ns), marker)
        if reached:
            return 0
        PyErr_CheckSignals()
        check_fork()
        if _exiting:
            raise stopped("this work will not complete")


cdef int flush_point(CStream* stream, CStream* target, Point point) except -1:
    cdef bint known = target == host_function_stream() or stream.backend().flush(deref(target), point, nanoseconds(0))
    while not known:
        with nogil:
            known = stream.backend().flush(deref(target), point, nanoseconds(signal_interval_ns))
        PyErr_CheckSignals()
        check_fork()
        if _exiting:
            raise stopped("this work will not be enqueued")
    return 0


cdef int synchronize_uses(const vector[Use]& uses) except -1:
    cdef size_t i
    for i in range(uses.size()):
        # A host function need not wait for its own stream: earlier work there is completed, and later work comes after
        # the function.
        if uses[i].stream.get() == host_function_stream():
            continue
        synchronize_point(uses[i].stream.get(), uses[i].point)
    return 0


cdef int pass_threads() except -1:
    if is_free_threaded:
        # This call stops every thread for a moment, at a point where the interpreter allows it.
        sys._current_frames()
    return 0


cdef bint per_thread_is_default() except -1:
    return runtime_options().per_thread_default


def default_stream_reason():
    """Return the default stream in force, ``"legacy"`` or ``"per-thread"``, and the reason."""
    options = runtime_options()
    return "per-thread" if options.per_thread_default else "legacy", options.default_reason.decode()


def keep_activity(keep):
    """Keep, or stop keeping, the activity of streams that end, for `activity`."""
    c_keep_activity(bool(keep))


def activity():
    """Return ``(device, stream, operations, busy_ms)`` for each stream with operations: live streams and kept ones."""
    return [
        (
            entry.device.decode(), entry.stream.decode("utf-8", "surrogatepass"),
            entry.activity.operations, entry.activity.busy_nanoseconds * 1e-6,
        )
        for entry in all_activity()
    ]


def finalizing():
    """Return whether the interpreter is exiting."""
    return _exiting or sys.is_finalizing()


def stopped(text):
    """Return the exception for a wait that cannot end because the interpreter is exiting.

    A daemon thread, which ends soon anyway, gets a SystemExit: a `join` of it returns and nothing is printed.
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


# Runs before modules are torn down, so no worker runs compiled code or touches memory that is about to be freed.
atexit.register(_stop)
