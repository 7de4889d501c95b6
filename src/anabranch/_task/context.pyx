"""The state of a task: its current device and, per device, its current stream.

A task is a thread or, inside asyncio, an asyncio task. The state lives in a context variable, which asyncio copies for
each task. It carries the number of the thread that set it and is ignored on other threads, whatever copied the context
there. A second variable keeps states of other threads that were found, since some frameworks copy a worker's changes
back to the waiting thread. A task's clock belongs to one context: a state found in another context passes its clock on
to a new task.
"""

import contextvars
import functools
import threading

cimport cython
from cpython.object cimport PyObject

from libc.stdint cimport uint64_t

from anabranch._core.core cimport CCapture, HazardMode, HostTask, Moment, Past, Ref, begin_checks, first_device
from anabranch._core.gc_pause cimport pause_collector, resume_collector
from anabranch._task.defaults cimport first_bounds, first_mode

cdef extern from *:
    """
    // Returns a new reference to the value of a variable that has a default.
    static PyObject* value_of(PyObject* variable) {
      PyObject* value = nullptr;
      PyContextVar_Get(variable, nullptr, &value);
      return value;
    }
    """
    object value_of(PyObject* variable)

cdef extern from "Python.h":
    object PyContextVar_Set(object var, object value)
    int PyContextVar_Reset(object var, object token) noexcept
    void PyErr_Clear()
    ctypedef struct PyThreadState:
        PyObject* context
        uint64_t context_ver    # changes with the thread's current context
        uint64_t id
    PyThreadState* PyThreadState_Get()

cdef extern from *:
    """
    // This thread's last task, valid for these numbers of the thread and of its context's version.
    static thread_local struct {
      std::uint64_t thread, change;
      anabranch::HostTask* task;
    } latest;
    static anabranch::HostTask* known_task(std::uint64_t thread, std::uint64_t change) {
      return latest.thread == thread && latest.change == change ? latest.task : nullptr;
    }
    static anabranch::HostTask* know_task(
        std::uint64_t thread, std::uint64_t change, anabranch::Ref<anabranch::HostTask> task) {
      static thread_local anabranch::Ref<anabranch::HostTask> kept;
      latest = {thread, change, task.get()};
      kept = std::move(task);
      return latest.task;
    }
    """
    HostTask* known_task(uint64_t thread, uint64_t change)
    HostTask* know_task(uint64_t thread, uint64_t change, Ref[HostTask] task)

cdef extern from "anabranch/hazard/hazard.hpp" nogil:
    Ref[HostTask] make_task "anabranch::make_ref<anabranch::HostTask>"()

cdef object _variable = contextvars.ContextVar("anabranch_task", default=None)
cdef object _foreign = contextvars.ContextVar("anabranch_foreign_tasks", default=())

# A bound, because threads may start each other in copies of their contexts forever.
cdef int most_foreign = 8


@cython.final
@cython.freelist(64)
@cython.trashcan(True)  # states of scopes that are never left form long chains
cdef class TaskState:
    pass


@cython.final
cdef class Leaving:
    pass


@cython.final
cdef class Task:
    pass


cdef TaskState current_state():
    cdef TaskState state = <TaskState>value_of(<PyObject*>_variable)
    if state is not None and _is_own(state, PyThreadState_Get()):
        return state
    return new_state(state)


cdef inline bint _is_own(TaskState state, PyThreadState* thread) noexcept:
    # The interpreter never reuses a thread's id.
    return state.thread == thread.id and state.task.context == thread.context


cdef TaskState new_state(TaskState found):
    # Without a collection: its finalizers may close an array that the caller is about to use.
    cdef bint collected = pause_collector()
    try:
        return _state_for(found)
    finally:
        if collected:
            resume_collector()


cdef TaskState _state_for(TaskState found):
    cdef PyThreadState* thread = PyThreadState_Get()
    cdef TaskState own = found
    if found is not None and found.thread != thread.id:
        own = _among_foreign(found, thread.id)
    if own is None:
        return _first_state()
    if own.task.context != thread.context:
        return _state_of_new_context(own)
    PyContextVar_Set(_variable, own)
    return own


cdef TaskState _among_foreign(TaskState found, uint64_t thread):
    # The thread's own state, or None. The state that was found takes its place.
    cdef TaskState own = None
    cdef TaskState each
    cdef list others = [found]
    for each in _foreign.get():
        if each.thread == thread:
            own = each
        elif each.thread != found.thread:
            others.append(each)
    PyContextVar_Set(_foreign, tuple(others[:most_foreign]))
    return own


cdef HostTask* current_task() except NULL:
    cdef PyThreadState* thread = PyThreadState_Get()
    cdef HostTask* task = known_task(thread.id, thread.context_ver)
    return task if task != NULL else find_task()


cdef HostTask* find_task() except NULL:
    cdef TaskState state = current_state()
    cdef PyThreadState* thread = PyThreadState_Get()
    return know_task(thread.id, thread.context_ver, state.task.core)


cdef Task _new_task():
    cdef Task task = Task.__new__(Task)
    task.core = make_task()
    return task


cdef TaskState _new_state(TaskState like, int device, int ordinal, object stream, TaskState rest):
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = like.thread
    state.task = like.task
    state.mode = like.mode
    state.bounds = like.bounds
    state.races = like.races
    state.capture = like.capture
    state.device = device
    state.ordinal = ordinal
    state.stream = stream
    state.rest = rest
    return state


# Only the current stream of one device, linked to the states of the others.
cdef TaskState _entry(int ordinal, object stream, TaskState rest):
    cdef TaskState state = TaskState.__new__(TaskState)
    state.ordinal = ordinal
    state.stream = stream
    state.rest = rest
    return state


cdef TaskState _first_state():
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = PyThreadState_Get().id
    state.task = _new_task()
    state.mode = first_mode()
    if state.mode == <int>HazardMode.check:
        _listen_for_threads()
    state.bounds = first_bounds()
    state.device = first_device()
    state.ordinal = -1
    PyContextVar_Set(_variable, state)
    state.task.context = PyThreadState_Get().context
    # The clock of the thread's creator, if `Thread.start` recorded it.
    cdef object inherited = getattr(threading._active.get(threading.get_ident()), "_anabranch_past", None)
    if inherited is not None:
        state.task.core.get().lane.follow((<KnownPast>inherited).past)
    return state


@cython.final
cdef class KnownPast:
    """The clock of a thread's creator when it started the thread."""
    cdef Past past


cdef bint _listening = False


cdef int _listen_for_threads() except -1:
    # Python has no hook for the start of a thread, so `start` is wrapped, once and only under "check".
    global _listening
    if _listening:
        return 0
    _listening = True
    start = threading.Thread.start

    @functools.wraps(start)
    def start_knowing(thread):
        cdef KnownPast known = KnownPast.__new__(KnownPast)
        known.past = current_state().task.core.get().lane.past()
        thread._anabranch_past = known
        start(thread)

    threading.Thread.start = start_knowing
    return 0


cdef TaskState _state_of_new_context(TaskState before):
    # An asyncio task, or any other code in a copied context: it inherits its creator's clock. Scopes that were left are
    # dropped, since tasks may start each other within scopes forever.
    cdef TaskState state = _new_state(
        before, before.device, before.ordinal, before.stream, _without(before, before.ordinal))
    state.scope = _copy_of_scopes(_scope_of(before))
    state.task = _new_task()
    state.task.core.get().lane.follow(before.task.core.get().lane.past())
    state.task.core.get().call = before.task.core.get().call
    state.task.context = PyThreadState_Get().context
    PyContextVar_Set(_variable, state)
    return state


cdef Task begin_call(const Past& past, const Moment& call):
    cdef Task task = _first_state().task
    task.core.get().lane.follow(past)
    task.core.get().call = call
    return task


cdef object stream_in(TaskState state, int ordinal):
    while state is not None:
        if state.ordinal == ordinal:
            return state.stream
        state = state.rest
    return None


cdef TaskState _without(TaskState state, int ordinal):
    # The streams of the other devices, in as few states, so that changes outside scopes do not accumulate.
    cdef TaskState kept = None
    cdef TaskState other
    while state is not None:
        if state.ordinal >= 0 and state.ordinal != ordinal:
            other = kept
            while other is not None and other.ordinal != state.ordinal:
                other = other.rest
            if other is None:
                kept = _entry(state.ordinal, state.stream, kept)
        state = state.rest
    return kept


cdef inline TaskState _scope_of(TaskState state):
    return state if state.owner is not None else state.scope


cdef TaskState _copy_of_scopes(TaskState scope):
    # Copies also the states that leaving the scopes restores: a scope may be left in a copy of its context.
    if scope is None:
        return None
    cdef TaskState around = _copy_of_scopes(_scope_of(scope.rest))
    if scope.leaving is None:
        scope.leaving = Leaving.__new__(Leaving)
        scope.leaving.done = scope.token is None
    if scope.leaving.done:
        return around
    cdef TaskState outer = _entry(scope.ordinal, stream_in(scope.rest, scope.ordinal), None)
    outer.device = scope.rest.device
    outer.scope = around
    cdef TaskState copy = _entry(scope.ordinal, scope.stream, outer)
    copy.owner = scope.owner
    copy.leaving = scope.leaving
    return copy


cdef int _enter(object owner, int device, int ordinal, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before, device, ordinal, stream, before)
    state.owner = owner
    state.token = PyContextVar_Set(_variable, state)
    return 0


cdef int enter_device(object owner, int device) except -1:
    return _enter(owner, device, -1, None)


cdef int enter_stream(object owner, int device, object stream) except -1:
    return _enter(owner, device, device, stream)


cdef TaskState _outside(TaskState before, TaskState scope):
    # The state after the innermost scope. Streams of other devices, made current with no scope, remain current.
    cdef TaskState outer = scope.rest
    cdef TaskState state = _new_state(
        before, outer.device, scope.ordinal, stream_in(outer, scope.ordinal), _without(before, scope.ordinal))
    state.scope = _scope_of(outer)
    return state


cdef int leave_scope(object owner) except -1:
    cdef TaskState before = current_state()
    cdef TaskState scope = _scope_of(before)
    # The innermost scope, unless scopes are left out of order, as generators can do.
    while scope is not None and scope.owner is not owner:
        scope = _scope_of(scope.rest)
    if scope is None:
        return 0
    cdef object token = scope.token
    scope.token = None
    if token is not None and scope.leaving is not None:
        scope.leaving.done = True
    if scope is before and scope.mode == scope.rest.mode and scope.races is scope.rest.races:
        # Resetting is cheaper than setting, but works only in the context that entered the scope.
        if token is None or PyContextVar_Reset(_variable, token) < 0:
            PyErr_Clear()
            PyContextVar_Set(_variable, scope.rest)
        return 0
    # Leaving a scope leaves those in it.
    cdef TaskState inner = None
    while inner is not scope:
        inner = _scope_of(before)
        before = _outside(before, inner)
    PyContextVar_Set(_variable, before)
    return 0


cdef int use_stream(int device, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before, device, device, stream, _without(before, device))
    state.scope = _scope_of(before)
    PyContextVar_Set(_variable, state)
    return 0


cdef int use_mode(int mode, bint bounds, object races) except -1:
    # Under "auto" a thread with an incomplete clock only adds waits for completed work, which cost nothing.
    if mode == <int>HazardMode.check:
        begin_checks()
        _listen_for_threads()
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before, before.device, before.ordinal, before.stream, before.rest)
    state.scope = _scope_of(before)
    state.mode = mode
    state.bounds = bounds
    state.races = races
    PyContextVar_Set(_variable, state)
    return 0


cdef int use_capture(Ref[CCapture] capture) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before, before.device, before.ordinal, before.stream, before.rest)
    state.scope = _scope_of(before)
    state.capture = capture
    PyContextVar_Set(_variable, state)
    return 0


cdef CCapture* current_capture() except? NULL:
    cdef CCapture* capture = current_state().capture.get()
    return capture if capture != NULL and capture.active() else NULL
