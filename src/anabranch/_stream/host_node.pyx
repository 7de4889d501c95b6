"""Host functions of graphs, called by every replay."""

from contextvars import Context

cimport cython
from cython.operator cimport dereference as deref
from libcpp.string cimport string

from anabranch._core.core cimport (
    CCapture, CStream, HazardMode, Moment, HostOperation, Point, Ref, begin_function, context_of, end_function,
    make_failure, make_graph_call, raise_unnoted)
from anabranch._core.explore cimport exploring, leave, linger
from anabranch._core.graph cimport add_host, tell_origin
from anabranch._hazards.ordering cimport PastOf, Submission, begin, commit, follow_call, past_of
from anabranch._task.context cimport Task, TaskState, begin_call, current_capture

from anabranch._core.errors import CaptureError, KernelError, place_of, text_of

# Imported on first use, as in `host_threads`.
cdef object _future = None


@cython.final
cdef class ReplayContext:
    """Dependencies of a replay's host functions."""
    def call(self, ReplayedFunction function, future):
        """Call a function in a task whose clock includes everything before the replay."""
        cdef Task task
        cdef PastOf past
        cdef Moment moment
        with nogil:
            moment = self.when.get()
        if moment.lane.get() == NULL:
            return function.fn(*function.args, **function.kwargs)
        task = begin_call(self.before, moment)
        try:
            return function.fn(*function.args, **function.kwargs)
        finally:
            follow_call(deref(task.core.get()), self.before, moment)
            past = PastOf.__new__(PastOf)
            past.past = task.core.get().lane.past()
            if future is not None:
                future._past = past
            self.stream.get().lane().follow(past.past)


@cython.final
cdef class ReplayedFunction:
    @cython.unraisable_tracebacks(False)
    def __del__(self):
        # The graph was dropped before its first replay, or its capture failed: nothing will call the function.
        for future in self.futures or ():
            if future.cancel():
                _future.begin(future)

    cdef int run(self, ReplayedCall* call, SkippedBy skipped) except -1:
        # This method owns `call` until the release below.
        cdef HostOperation* pending = call
        try:
            self.run_with(call, skipped)
        finally:
            # Runs even after an exception, so that the stream advances; completing twice has no effect.
            pending.complete()
            call.release()
        return 0

    cdef int run_with(self, ReplayedCall* call, SkippedBy skipped) except -1:
        cdef HostOperation* pending = call
        cdef ReplayContext context = context_of(deref(call))
        cdef string message
        cdef object error = None
        cdef bint lingers = False
        # Replays of several instances may arrive at the same time; the first takes the future.
        with cython.critical_section(self):
            future = self.futures.pop() if self.futures else None
        if future is not None and not _future.begin(future):
            future = None
        if skipped is not None:
            outcome = skipped.outcome_of(future)
        else:
            begin_function(deref(context.stream.get()))
            try:
                outcome = True, Context().run(context.call, self, future)
                lingers = linger_for(future)
            except BaseException as raised:
                outcome = _future.failed(raised)
                error = KernelError(
                    f"the host function {self.name!r} of a graph raised {text_of(raised)}{place_of(raised)}")
                message = str(error).encode(errors="backslashreplace")
                lingers = linger_for(future)
            finally:
                end_function()
        if future is None:
            self.complete(pending, message, error)
        else:
            # As for any host function: the future and the stream complete together for every observer.
            with future._condition:
                self.complete(pending, message, error)
                future.resolve(outcome)
            try:
                future.announce()
            finally:
                if lingers:
                    leave()
        return 0

    cdef int complete(self, HostOperation* pending, const string& message, object error) except -1:
        # The stream already has an error that came from it.
        if message.empty():
            pending.complete()
        else:
            pending.complete(make_failure(message, error))
        return 0


@cython.final
cdef class SkippedBy:
    cdef tuple outcome_of(self, object future):
        if future is not None:
            future._skipped = self
        try:
            raise_unnoted(deref(self.failure.get()))
        except BaseException as error:
            return False, error

    def note_raised(self):
        """Note that the program has seen the failure, as if a wait for the stream had raised it."""
        self.failure.get().note_told()


@cython.final
cdef class CapturedIn:
    """The capture that a function was submitted in."""

    cdef Ref[CCapture] capture

    def refuse_wait(self):
        """Raise `CaptureError`, which ends the capture, if this task is still in it: nothing calls the function yet."""
        if current_capture() == self.capture.get():
            self.capture.get().refuse(
                b"the host cannot wait for a captured function, which runs when the graph is launched")


cdef class ReservedWork:
    def host_functions(self):
        """Return itself: what replays have to know of."""
        return [self]

    cdef int reserve(self) except -1:
        raise NotImplementedError

    cdef int withdraw(self) except -1:
        raise NotImplementedError


cdef bint linger_for(object future) except -1:
    if not exploring() or future is None or not future._done_callbacks:
        return False
    linger()
    return True


cdef int reserve_all(list functions) except -1:
    cdef Py_ssize_t i
    for i, each in enumerate(functions):
        if isinstance(each, ReservedWork):
            try:
                (<ReservedWork>each).reserve()
            except BaseException:
                withdraw_all(functions[:i])
                raise
    return 0


cdef int withdraw_all(list functions) except -1:
    for each in reversed(functions):
        if isinstance(each, ReservedWork):
            (<ReservedWork>each).withdraw()
    return 0


cdef int refuse_reserved(list functions, str where) except -1:
    for each in functions:
        if isinstance(each, ReservedWork):
            refuse_collective(where)
    return 0


cdef int refuse_collective(str where) except -1:
    raise CaptureError(f"a collective cannot be part of {where}: other ranks do not know whether it runs")


cdef str _name_of(object fn):
    # The attribute may be any object of the program's, and may raise.
    try:
        name = fn.__qualname__
    except Exception:
        name = None
    return name if type(name) is str else type(fn).__name__


cdef GraphedArgument _graphed_argument = NULL


cdef int read_graphed_arguments_with(GraphedArgument read) except -1:
    global _graphed_argument
    _graphed_argument = read
    return 0


cdef object submit_captured(
        TaskState state, CStream* stream, object fn, tuple args, dict kwargs, Touches touches, object future):
    global _future
    if _future is None:
        from anabranch._stream import future as _future
    cdef ReplayedFunction function = ReplayedFunction.__new__(ReplayedFunction)
    cdef CapturedIn captured
    cdef string name
    cdef Submission submission
    cdef Point point
    if stream.capture().exclusive():
        args = tuple([_graphed_argument(stream, each) for each in args])
        kwargs = {name: _graphed_argument(stream, each) for name, each in kwargs.items()}
        for each in touches.arrays if touches is not None else ():
            _graphed_argument(stream, each)
    function.fn = fn
    function.args = args
    function.kwargs = kwargs
    function.futures = [future]
    captured = CapturedIn.__new__(CapturedIn)
    captured.capture = Ref[CCapture].share(stream.capture())  # another thread's where this one is in none
    future._captured = captured
    function.name = _name_of(fn)
    name = function.name.encode(errors="backslashreplace")
    if touches is not None:
        begin(&submission, state, stream, touches.all.data(), touches.all.size())
    point = add_host(deref(stream), name, make_graph_call(function))
    tell_origin(deref(stream), point, function)
    if touches is not None:
        commit(&submission, state, point)
    return future


cdef ReplayContext context_of_replay(CStream* stream, int mode):
    cdef ReplayContext context = ReplayContext.__new__(ReplayContext)
    context.stream = Ref[CStream].share(stream)
    if mode != <int>HazardMode.off:
        context.before = past_of(deref(stream))
        context.snapshot = stream.lane().snapshot()
    return context


cdef int note_replay(ReplayContext context, int mode) except -1:
    cdef Moment moment
    if context is not None:
        if mode != <int>HazardMode.off:
            moment = context.stream.get().lane().advance(context.snapshot)
        context.when.set(moment)
    return 0
