"""Host threads: host functions in stream order, notifications for `await`, and references dropped by streams.

Streams post jobs to the core's inbox. Python threads of this module wait there without the interpreter lock and run
them. A watcher starts another thread when jobs wait while every thread is busy, so any number of streams can run
functions concurrently, and short functions share a few threads.
"""

import sys
import threading
import time

from anabranch._stream import awaitable

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport uintptr_t

from anabranch._core.core import finalizing, stopped

from anabranch._core cimport core
from anabranch._core.core cimport (
    CStream, HazardMode, HostCall, HostOperation, JobKind, Moment, Notice, OperationKind, Past, Point,
    PythonJob, Record, Ref, ReplayedCall, Site, as_pending, begin_function, end_function, host_function_stream,
    host_inbox, raise_own_wait, refuse_own_wait, synchronize_point, tracing,
)
from anabranch._core.explore cimport ask, exploring, leave, note_uncontrolled, pass_views, run_all
from anabranch._core.tracing cimport show
from anabranch._hazards.ordering cimport (
    DeferredMoment, PastOf, Submission, Touches, begin, begin_untouched, follow_call, observe_record,
    refuse_own_wait_for,
)
from anabranch._stream.host_node cimport ReplayedFunction, SkippedBy, linger_for, submit_captured
from anabranch._task.context cimport Task, TaskState, begin_call, current_state
from anabranch._task.site cimport current_site

cdef extern from "anabranch/_core/host_job.hpp" namespace "anabranch::python":
    HostCall* make_call(object) nogil
    Notice* make_notice(object) nogil
    PythonJob* next_job(PythonJob*) nogil
    PythonJob* take_job() nogil
    PythonJob* try_take_job() nogil
    HostCall* as_call(PythonJob*) nogil
    ReplayedCall* as_replayed(PythonJob*) nogil
    void delete_job(PythonJob*) nogil
    void complete_quietly(HostOperation&) nogil
    void discard_with "anabranch::python::discard_owner"(void*, void (*)(PyObject*) noexcept) noexcept nogil

# Threads beyond this many waiting ones exit.
cdef long most_waiting = 8

_numbers = iter(range(2**62))
_started = threading.Event()
_starting = threading.Lock()


# Imported on first use: importing concurrent.futures takes longer than importing this package.
cdef object _future = None


cdef int ensure_host_thread() except -1:
    if not _started.is_set():
        with _starting:
            if not _started.is_set():
                # The watcher must exist once only, so it starts last: this call is repeated if starting a thread fails.
                _start_thread(_serve, f"anabranch-host-{next(_numbers)}")
                _start_thread(_watch, "anabranch-host-watch")
                _started.set()
    return 0


def _start_thread(work, name):
    # A daemon thread: a function behind a gate that never opens must not delay the exit.
    threading.Thread(target=work, name=name, daemon=True).start()


def _watch():
    cdef bint wanted
    while True:
        with nogil:
            wanted = host_inbox().wait_until_short()
        if not wanted or finalizing():
            return
        try:
            _start_thread(_serve, f"anabranch-host-{next(_numbers)}")
        except (RuntimeError, MemoryError):
            # The system has no threads left. Retry here, since nothing else starts a thread once there are.
            time.sleep(0.01)


def _serve():
    cdef PythonJob* job
    while True:
        # With the interpreter lock in hand: a thread that computes may not give it back for milliseconds.
        job = try_take_job()
        if job == NULL:
            with nogil:
                job = take_job()
        if job == NULL or finalizing():
            return
        _do(job)
        if host_inbox().spare() >= most_waiting:
            return


cdef int _do(PythonJob* job) except -1:
    cdef JobKind kind = job.kind
    if kind == JobKind.notice or kind == JobKind.discard or kind == JobKind.give_back:
        return _do_brief(job)
    cdef object target = <object>job.object
    cdef SkippedBy skipped = None
    if job.error.get() != NULL:
        skipped = SkippedBy.__new__(SkippedBy)
        skipped.failure = job.error
    if kind == JobKind.replay:
        (<ReplayedFunction>target).run(as_replayed(job), skipped)
        return 0
    Py_DECREF(target)
    return (<Call>target).run(as_call(job), skipped)


cdef int _do_brief(PythonJob* job) except -1:
    cdef PythonJob* later
    cdef list arrived = []
    cdef list owners = []
    cdef list dropped = []
    cdef Owner owner
    while job != NULL:
        later = next_job(job)
        if job.kind == JobKind.notice:
            arrived.append(<object>job.object)
        else:
            (owners if job.kind == JobKind.give_back else dropped).append(<object>job.object)
        Py_DECREF(<object>job.object)
        delete_job(job)
        job = later
    # The other references are dropped when this call returns, since that may run any code.
    if arrived:
        awaitable.resume(arrived)
    for owner in owners:
        _give_back(owner)
    return 0


cdef class Owner:
    cdef int give_back(self) except -1:
        raise NotImplementedError


# Otherwise Cython prints the exception before it calls the hook, and a SystemExit then ends the process.
@cython.unraisable_tracebacks(False)
cdef void _give_back(Owner owner) noexcept:
    owner.give_back()


cdef void _give_back_last(PyObject* owner) noexcept:
    _give_back(<Owner>owner)
    Py_DECREF(<object>owner)


cdef void discard_owner(void* owner) noexcept nogil:
    discard_with(owner, _give_back_last)


@cython.final
cdef class Call:
    cdef Ref[CStream] stream
    cdef object future
    cdef object fn
    cdef tuple args
    cdef dict kwargs
    cdef Past before        # clock that the call follows
    cdef DeferredMoment when  # moment of the call; empty where order is not tracked

    def call(self):
        """Call the function in its own context, in a task whose clock includes everything before the call."""
        cdef Task task
        cdef PastOf past
        cdef Moment moment
        if not self.when.is_set():
            with nogil:
                self.when.get()
        moment = self.when.get()
        if moment.lane.get() == NULL:
            return self.fn(*self.args, **self.kwargs)
        task = begin_call(self.before, moment)
        try:
            return self.fn(*self.args, **self.kwargs)
        finally:
            follow_call(deref(task.core.get()), self.before, moment)
            past = PastOf.__new__(PastOf)
            past.past = task.core.get().lane.past()
            self.future._past = past
            # Work enqueued on the stream from now on is ordered after the function's end.
            self.stream.get().lane().follow(past.past)

    cdef int run(self, HostCall* call, SkippedBy skipped) except -1:
        # This method owns `call` until the release below.
        cdef HostOperation* pending = call
        cdef bint lingers = False
        try:
            if skipped is not None:
                outcome = skipped.outcome_of(self.future)
            else:
                begin_function(deref(self.stream.get()))
                try:
                    outcome = _future.evaluate(self.future, self.call)
                    lingers = linger_for(self.future)
                finally:
                    end_function()
            # Release the arguments before anyone sees completion, so that their memory is free by then.
            self.fn = self.args = self.kwargs = None
            # The future and the stream complete together for every observer.
            with self.future._condition:
                self.complete(pending)
                self.future.resolve(outcome)
            self.future.announce()
        finally:
            # Runs even after an exception, so that the stream advances; completing twice has no effect.
            pending.complete()
            call.release()
            if lingers:
                leave()
        return 0

    cdef int complete(self, HostOperation* pending) except -1:
        # A CPU device only notes it and posts the stream's next function, which this thread then takes. A GPU's driver
        # may block.
        if exploring() or self.stream.get().backend().capabilities().workers == 0:
            with nogil:
                pending.complete()
            return 0
        complete_quietly(deref(pending))
        return 0


cdef object _explored_future():
    from anabranch._stream.explored_future import ExploredFuture

    return ExploredFuture()


cdef object submit_call(Ref[CStream] stream, object fn, tuple args, dict kwargs, object reads, object writes):
    global _future
    cdef Touches touches = None
    if reads is not () or writes is not ():
        from anabranch._memory.host_access import touches_of

        touches = touches_of(reads, writes)
    cdef TaskState state = current_state()
    cdef Submission submission
    cdef Point point
    cdef Moment moment
    cdef Site site
    if _future is None:
        from anabranch._stream import future as _future
    ensure_host_thread()
    future = _explored_future() if exploring() else _future.StreamFuture()
    if stream.get().capture() != NULL:
        return submit_captured(state, stream.get(), fn, args, kwargs, touches, future)
    if not exploring():
        future._stream = <uintptr_t>stream.get()
    cdef Call call = Call.__new__(Call)
    call.stream = stream
    call.future = future
    call.fn = fn
    call.args = args
    call.kwargs = kwargs
    if touches is not None:
        begin(&submission, state, stream.get(), touches.all.data(), touches.all.size())
    else:
        begin_untouched(&submission, state, stream.get())
    if state.mode != <int>HazardMode.off:
        call.before = submission.past()
    cdef HostCall* pending = make_call(call)
    Py_INCREF(call)
    try:
        point = stream.get().backend().suspend(deref(stream.get()), as_pending(pending))
    finally:
        pending.release()
    if state.mode != <int>HazardMode.off:
        moment = submission.advance()
    call.when.set(moment)
    if exploring():
        call.future.explore(notification_at(stream, point))
    if tracing():
        show(stream.get(), point, OperationKind.host, getattr(fn, "__qualname__", None), 0)
    if touches is not None and state.mode == <int>HazardMode.check:
        site = current_site()
    submission.commit_call(point, site, moment)
    if exploring():
        with nogil:
            pass_views(deref(stream.get()))
    return call.future


def refuse_own_future(uintptr_t stream):
    """Raise in a host function of a stream, given by its address: what comes later in it cannot be waited for."""
    if stream == <uintptr_t>host_function_stream():
        raise_own_wait()


cdef bint _other_tasks():
    # Whether the event loop has tasks that could run meanwhile.
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and len(asyncio.all_tasks()) > 1
    except RuntimeError:  # no loop of asyncio runs
        return False


@cython.final
cdef class Notification:
    def reached(self):
        """Return whether the point is reached; raises if the work failed or waits for the caller."""
        cdef CStream* stream = self.record.stream.get()
        refuse_own_wait(stream, self.record.point)
        refuse_own_wait_for(self.record.past)
        if exploring():
            if not stream.backend().query(deref(stream), self.record.point) and _other_tasks():
                with nogil:
                    note_uncontrolled()
            # The loop has nothing else to wait for that anybody would run.
            synchronize_point(stream, self.record.point, self.record.marker.get())
        if not stream.backend().query(deref(stream), self.record.point, self.record.marker.get()):
            return False
        observe_record(self.record)
        return True

    def ask(self):
        """Have an exploration try both answers, and return the one of this run: whether the point is reached."""
        cdef CStream* stream = self.record.stream.get()
        with nogil:
            ask(deref(stream), self.record.point)
        try:
            return stream.backend().query(deref(stream), self.record.point)
        except Exception:
            return True  # by a failure

    def resume(self, suspended):
        """Have a host thread pass `suspended` to `awaitable.resume` once the point is reached or has failed.

        Returns False if that is already so.
        """
        if finalizing():
            # No host thread would resume it. Like every wait at exit, this one raises after a moment.
            time.sleep(0.02)
            if self.reached():
                return False
            raise stopped("this work will not complete")
        ensure_host_thread()
        cdef CStream* stream = self.record.stream.get()
        cdef Notice* notice = make_notice(suspended)
        Py_INCREF(suspended)
        if stream.backend().notify(deref(stream), self.record.point, deref(notice), self.record.marker.get()):
            return True
        Py_DECREF(suspended)
        delete_job(notice)
        return False


def wait_for_hosts():
    """Wait, in an exploration, for something that only another host thread can do: run all that can run."""
    with nogil:
        run_all()


def uncontrolled():
    """Tell an exploration that it leaves out orders."""
    with nogil:
        note_uncontrolled()


def check_fork():
    """Raise a ForkError in a forked child whose parent had used a device."""
    core.check_fork()


cdef Notification notification_at(const Ref[CStream]& stream, Point point):
    cdef Notification made = Notification.__new__(Notification)
    made.record.stream = stream
    made.record.point = point
    return made


cdef Notification notification(const Record& record):
    cdef Notification made = Notification.__new__(Notification)
    made.record = record
    return made
