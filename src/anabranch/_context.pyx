"""The state of a task: its current device and, per device, its current stream.

A task is a thread or, inside asyncio, an asyncio task. The state lives in a context variable, which asyncio
copies for each task; it carries the number of the thread that set it, and counts for nothing on another
thread, whatever copied the context there.
"""

import contextvars

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_New, PyTuple_SET_ITEM

from anabranch._core cimport first_device, thread_serial

cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    object PyContextVar_Set(object var, object value)

cdef object _variable = contextvars.ContextVar("anabranch_task", default=None)


@cython.final
@cython.freelist(64)
cdef class TaskState:
    pass


cdef TaskState current_state():
    cdef PyObject* found = NULL
    PyContextVar_Get(_variable, NULL, &found)
    cdef object state = <object>found
    Py_DECREF(state)
    if state is not None and (<TaskState>state).thread == thread_serial():
        return <TaskState>state
    return _first_state()


cdef TaskState _first_state():
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = thread_serial()
    state.device = first_device()
    state.streams = ()
    PyContextVar_Set(_variable, state)
    return state


cdef tuple _with_stream(tuple streams, Py_ssize_t ordinal, object stream):
    cdef Py_ssize_t known = len(streams)
    cdef Py_ssize_t count = max(known, ordinal + 1)
    cdef tuple changed = PyTuple_New(count)
    cdef Py_ssize_t i
    cdef object one
    for i in range(count):
        one = stream if i == ordinal else <object>PyTuple_GET_ITEM(streams, i) if i < known else None
        Py_INCREF(one)
        PyTuple_SET_ITEM(changed, i, one)
    return changed


cdef inline TaskState _scope_of(TaskState state):
    return state if state.owner is not None else state.scope


cdef int _enter(object owner, int device, int ordinal, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = device
    state.streams = before.streams if ordinal < 0 else _with_stream(before.streams, ordinal, stream)
    state.owner = owner
    state.outer = before
    state.ordinal = ordinal
    PyContextVar_Set(_variable, state)
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
        scope = _scope_of(scope.outer)
    if scope is None:
        return 0
    if scope is before:
        PyContextVar_Set(_variable, scope.outer)
        return 0
    # Streams of other devices that were made current with no scope stay so.
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = scope.outer.device
    state.streams = before.streams
    if scope.ordinal >= 0:
        state.streams = _with_stream(before.streams, scope.ordinal, stream_in(scope.outer, scope.ordinal))
    state.scope = _scope_of(scope.outer)
    PyContextVar_Set(_variable, state)
    return 0


cdef int use_stream(int device, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = device
    state.streams = _with_stream(before.streams, device, stream)
    state.scope = _scope_of(before)
    PyContextVar_Set(_variable, state)
    return 0
