"""The state of a task: its current device and, per device, its current stream.

A task is a thread or, inside asyncio, an asyncio task. The state lives in a context variable, which asyncio
copies for each task; it carries the number of the thread that set it, and counts for nothing on another
thread, whatever copied the context there.
"""

import contextvars

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from libc.stdint cimport uint64_t

from anabranch._core cimport first_device

cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    object PyContextVar_Set(object var, object value)
    int PyContextVar_Reset(object var, object token) noexcept
    void PyErr_Clear()
    ctypedef struct PyThreadState:
        pass
    PyThreadState* PyThreadState_Get()
    uint64_t PyThreadState_GetID(PyThreadState* state)

cdef object _variable = contextvars.ContextVar("anabranch_task", default=None)


@cython.final
@cython.freelist(64)
cdef class TaskState:
    pass


cdef inline uint64_t _this_thread():
    # No other thread of the interpreter has or had this number.
    return PyThreadState_GetID(PyThreadState_Get())


cdef TaskState current_state():
    cdef PyObject* found = NULL
    PyContextVar_Get(_variable, NULL, &found)
    cdef object state = <object>found
    Py_DECREF(state)
    if state is not None and (<TaskState>state).thread == _this_thread():
        return <TaskState>state
    return _first_state()


cdef TaskState _new_state(uint64_t thread, int device, int ordinal, object stream, TaskState rest):
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = thread
    state.device = device
    state.ordinal = ordinal
    state.stream = stream
    state.rest = rest
    return state


cdef TaskState _first_state():
    cdef TaskState state = _new_state(_this_thread(), first_device(), -1, None, None)
    PyContextVar_Set(_variable, state)
    return state


cdef object stream_in(TaskState state, int ordinal):
    while state is not None:
        if state.ordinal == ordinal:
            return state.stream
        state = state.rest
    return None


cdef TaskState _without(TaskState state, int ordinal):
    # What it tells of the other devices, in as few states, so that changes with no scope do not add up.
    cdef TaskState kept = None
    cdef TaskState other
    while state is not None:
        if state.ordinal >= 0 and state.ordinal != ordinal:
            other = kept
            while other is not None and other.ordinal != state.ordinal:
                other = other.rest
            if other is None:
                kept = _new_state(state.thread, 0, state.ordinal, state.stream, kept)
        state = state.rest
    return kept


cdef inline TaskState _scope_of(TaskState state):
    return state if state.owner is not None else state.scope


cdef int _enter(object owner, int device, int ordinal, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before.thread, device, ordinal, stream, before)
    state.owner = owner
    state.token = PyContextVar_Set(_variable, state)
    return 0


cdef int enter_device(object owner, int device) except -1:
    return _enter(owner, device, -1, None)


cdef int enter_stream(object owner, int device, object stream) except -1:
    return _enter(owner, device, device, stream)


cdef int leave_scope(object owner) except -1:
    cdef TaskState before = current_state()
    cdef TaskState scope = _scope_of(before)
    # The innermost one, unless scopes are left out of order, as generators can.
    while scope is not None and scope.owner is not owner:
        scope = _scope_of(scope.rest)
    if scope is None:
        return 0
    cdef object token = scope.token
    scope.token = None
    if scope is before:
        # Cheaper than to set it. Not in a copy of the context in which the scope was entered.
        if token is None or PyContextVar_Reset(_variable, token) < 0:
            PyErr_Clear()
            PyContextVar_Set(_variable, scope.rest)
        return 0
    # Streams of other devices that were made current with no scope stay so.
    cdef TaskState outer = scope.rest
    cdef object stream = stream_in(outer, scope.ordinal)
    cdef TaskState state = _new_state(
        before.thread, outer.device, scope.ordinal, stream, _without(before, scope.ordinal))
    state.scope = _scope_of(outer)
    PyContextVar_Set(_variable, state)
    return 0


cdef int use_stream(int device, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = _new_state(before.thread, device, device, stream, _without(before, device))
    state.scope = _scope_of(before)
    PyContextVar_Set(_variable, state)
    return 0
