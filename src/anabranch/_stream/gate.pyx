"""Operations for tests: `Gate` holds a stream, `fail` fails one."""

import sys

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp.string cimport string

from anabranch._core cimport core
from anabranch._core.core cimport CStream, HostOperation, Ref, make_failure, translate
from anabranch._core.explore cimport exploring, gate_opened
from anabranch._hazards.ordering cimport begin_operation, note_operation
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_task

from anabranch._core.errors import KernelError

cdef extern from "anabranch/_core/host_job.hpp" namespace "anabranch::python" nogil:
    Ref[HostOperation] make_gate() except +translate


@cython.final
cdef class Gate:
    """Gate(stream)\n--\n
    Holds a stream from now until it is opened.

    What was enqueued before runs, what is enqueued after waits. Nothing else is held: not other streams, not
    allocations, not host functions. As a context manager it opens at the end of the block. Safe to use from any thread;
    each method is atomic.

    Parameters
    ----------
    stream : Stream

    Attributes
    ----------
    stream : Stream
        The one that it holds.

    Examples
    --------
    >>> import anabranch as ab
    >>> s = ab.Stream("cpu")
    >>> with ab.testing.Gate(s):
    ...     a = ab.zeros(3, stream=s)
    ...     s.query()
    False
    >>> s.synchronize()
    """

    cdef Ref[HostOperation] pending
    cdef readonly Stream stream

    def __cinit__(self, Stream stream not None):
        cdef CStream* target = stream.get()
        self.stream = stream
        self.pending = make_gate()
        cdef uint64_t snapshot = begin_operation(deref(target), deref(current_task()))
        target.backend().suspend(deref(target), self.pending)
        note_operation(deref(target), snapshot)

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; hand over what it holds back, and make a Gate there")

    @property
    def is_open(self):
        """Whether `open` was called."""
        core.check_fork()
        return self.pending.get().completed()

    def open(self):
        """Let the stream go on. From any thread; opening again does nothing."""
        core.check_fork()
        if exploring():
            gate_opened(deref(self.pending.get()))
        self.pending.get().complete()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.open()

    def __repr__(self):
        return f"<Gate on {self.stream!r}, {'open' if self.pending.get().completed() else 'closed'}>"


def fail(Stream stream not None, error=None):
    """Enqueue an operation that fails, as a kernel would.

    From then on every call that observes the stream, or one that waited for it, raises; the stream's later
    work does not run.

    Parameters
    ----------
    stream : Stream
    error : BaseException or str, optional
        What is raised. A str: a KernelError with that text. None: a KernelError that names the line of this call.

    Raises
    ------
    TypeError
        For another `error`.
    ClosedError
        If the stream is closed.
    """
    cdef CStream* target = stream.get()
    frame = sys._getframe(0)
    where = f"enqueued at {frame.f_code.co_filename}:{frame.f_lineno} on {stream!r}"
    if error is None or isinstance(error, str):
        raised = KernelError(f"{error or 'an operation failed on request'}, {where}")
    elif isinstance(error, BaseException):
        raised = error
        raised.add_note(where)
    else:
        raise TypeError(f"error is an exception, a str or None, not {type(error).__name__}")
    cdef string message = str(raised).encode(errors="backslashreplace")
    cdef Ref[HostOperation] pending = make_gate()
    pending.get().complete(make_failure(message, raised))
    cdef uint64_t snapshot = begin_operation(deref(target), deref(current_task()))
    target.backend().suspend(deref(target), pending)
    note_operation(deref(target), snapshot)
