"""The state of a task: its current device and, per device, its current stream.

A task is a thread or, inside asyncio, an asyncio task. The state lives in a context variable, which asyncio
copies for each task; it carries the number of the thread that set it, and counts for nothing on another
thread, whatever copied the context there.
"""

import contextvars

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from anabranch._core cimport first_device, thread_serial

cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    object PyContextVar_Set(object var, object value)

cdef object _variable = contextvars.ContextVar("anabranch_task", default=None)


@cython.final
@cython.freelist(64)
cdef class Frame:
    pass


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


cdef tuple _with_stream(tuple streams, int ordinal, object stream):
    if ordinal == 0 and len(streams) <= 1:
        return (stream,)
    changed = list(streams)
    while len(changed) <= ordinal:
        changed.append(None)
    changed[ordinal] = stream
    return tuple(changed)


cdef int _enter(object owner, int device, int ordinal, object stream) except -1:
    cdef TaskState before = current_state()
    cdef Frame frame = Frame.__new__(Frame)
    frame.owner = owner
    frame.device = before.device
    frame.ordinal = ordinal
    frame.outer = before.frames
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = device
    if ordinal < 0:
        state.streams = before.streams
    else:
        frame.stream = stream_in(before, ordinal)
        state.streams = _with_stream(before.streams, ordinal, stream)
    state.frames = frame
    PyContextVar_Set(_variable, state)
    return 0


cdef int enter_device(object owner, int device) except -1:
    return _enter(owner, device, -1, None)


cdef int enter_stream(object owner, int device, object stream) except -1:
    return _enter(owner, device, device, stream)


cdef int leave_scope(object owner) except -1:
    cdef TaskState before = current_state()
    cdef Frame frame = before.frames
    # The innermost one, unless scopes are left out of order, as generators can.
    while frame is not None and frame.owner is not owner:
        frame = frame.outer
    if frame is None:
        return 0
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = frame.device
    state.streams = before.streams if frame.ordinal < 0 else _with_stream(before.streams, frame.ordinal, frame.stream)
    state.frames = frame.outer
    PyContextVar_Set(_variable, state)
    return 0


cdef int use_stream(int device, object stream) except -1:
    cdef TaskState before = current_state()
    cdef TaskState state = TaskState.__new__(TaskState)
    state.thread = before.thread
    state.device = device
    state.streams = _with_stream(before.streams, device, stream)
    state.frames = before.frames
    PyContextVar_Set(_variable, state)
    return 0
