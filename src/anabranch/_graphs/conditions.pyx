"""Branches and loops by a flag in the memory of a device."""

cimport cython
from cython.operator cimport dereference as deref
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport CCapture, CStream, Point, Ref, Touch
from anabranch._core.graph cimport (
    GraphAccesses, NodeKind, NodeTouch, add_nested, begin_body, end_capture, has_external, merged, take_accesses,
    tell_origin)
from anabranch._graphs.nodes cimport functions_of
from anabranch._stream.host_node cimport refuse_collective, refuse_reserved
from anabranch._hazards.ordering cimport Submission, begin, commit
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.slice cimport whole_of
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state, use_capture

from anabranch._core.errors import text_of


@cython.final
cdef class Body:
    pass

    cdef int record(self, TaskState state, CStream* queue, object fn, vector[NodeTouch]* touches) except -1:
        cdef Ref[CCapture] before = state.capture
        cdef Ref[CCapture] inner = begin_body(deref(queue))
        use_capture(inner)
        try:
            fn()
            self.graph = end_capture(deref(inner.get()), self.works)
        except BaseException as error:
            inner.get().abandon(text_of(error).encode(errors="backslashreplace"))
            raise
        finally:
            use_capture(before)
        self.functions = functions_of(deref(self.graph.get()))
        refuse_reserved(self.functions, "a branch or loop")
        if has_external(deref(self.works.get())):
            refuse_collective("a branch or loop")
        self.accesses = take_accesses(deref(self.graph.get()))
        touches.insert(touches.end(), self.accesses.touches.begin(), self.accesses.touches.end())
        return 0


@cython.final
cdef class Bodies:
    def host_functions(self):
        """Return the host functions that replays may call."""
        return self.functions()

    cdef list functions(self):
        return self.then.functions + (self.otherwise.functions if self.otherwise is not None else [])


cdef Array _flag(object flag):
    cdef Array array = as_array(flag, "flag")
    if array.layout.size() != 1 or array._dtype.str[1:] != "i4":
        raise ValueError(f"flag is an int32 array of one element, not {array._described()}")
    return array


cdef bint _is_set(Array flag) except -1:
    return bool(flag.numpy().reshape(-1)[0])


cdef CStream* _recorder(Array flag) except? NULL:
    # The recorder of the current stream of the flag's device, or null.
    cdef Stream stream = current_stream_of(current_state(), flag._device.ordinal)
    if stream.is_default and not stream.per_thread:
        return NULL
    cdef CStream* queue = stream.get()
    return queue if queue.capture() != NULL else NULL


cdef int _add(CStream* queue, NodeKind kind, Array flag, object then, object otherwise) except -1:
    cdef TaskState state = current_state()
    cdef vector[NodeTouch] accesses
    cdef vector[Touch] touches
    cdef Bodies bodies = Bodies.__new__(Bodies)
    cdef Body body = Body.__new__(Body)
    cdef Body other = Body.__new__(Body)
    cdef GraphAccesses nothing
    cdef string empty
    cdef Submission submission
    cdef Point point
    # The functions may close the array.
    flag = whole_of(flag)
    body.record(state, queue, then, &accesses)
    if otherwise is not None:
        other.record(state, queue, otherwise, &accesses)
    touches = merged(accesses)
    touches.push_back(flag.touch(MemoryAccess.read))
    begin(&submission, state, queue, touches.data(), touches.size())
    point = add_nested(
        deref(queue), kind, empty, flag.data, body.graph, body.works, other.graph, other.works)
    bodies.then = body
    bodies.otherwise = other if otherwise is not None else None
    bodies.flag = flag if queue.capture().exclusive() else None
    tell_origin(deref(queue), point, bodies)
    commit(&submission, state, point)
    # The outer capture keeps the memory from here on. References here would hide the end of memory that it allocated.
    if not queue.capture().exclusive():
        body.accesses = other.accesses = nothing
    return 0


def run_if(flag, then, otherwise=None):
    """Run one of two functions' work, by a flag that the device holds.

    Outside of a capture the host waits for the flag and calls the function. In a capture of the current stream of the
    flag's device both functions are called once, what they put into that stream, and into those that wait for it,
    becomes graphs within the graph, and each replay runs the one that the flag says then.

    Parameters
    ----------
    flag : Array
        One int32: not 0, or 0. As the work put in before leaves it.
    then, otherwise : callable
        Take no arguments. `otherwise` may be None: nothing.

    Raises
    ------
    ValueError
        For another kind of flag.
    CaptureError
        For what a capture forbids; in a function that is captured also an allocation. On a GPU at the end of the
        capture, if the driver is older than CUDA 12.4 or the graph calls host functions.

    Examples
    --------
    >>> import anabranch as ab
    >>> a, flag = ab.zeros(2), ab.ones(1, "int32")
    >>> ab.run_if(flag, lambda: ab.fill(a, 1), lambda: ab.fill(a, 2))
    >>> a.numpy()
    array([1., 1.], dtype=float32)
    """
    cdef Array array = _flag(flag)
    for name, fn in (("then", then), ("otherwise", otherwise)):
        if not callable(fn) and not (fn is None and name == "otherwise"):
            raise TypeError(f"{name} must be callable, not {type(fn).__name__}")
    cdef CStream* queue = _recorder(array)
    if queue != NULL:
        _add(queue, NodeKind.branch, array, then, otherwise)
    elif _is_set(array):
        then()
    elif otherwise is not None:
        otherwise()


def run_while(flag, body):
    """Run a function's work again and again, for as long as a flag that the device holds is not 0.

    The flag is tested before the first pass and after each. As `run_if`: outside of a capture the host waits for the
    flag before each pass; in a capture the function is called once, and each replay loops on the device.

    Parameters
    ----------
    flag : Array
        One int32. Something in `body` should write it.
    body : callable
        Takes no arguments.

    Raises
    ------
    ValueError, CaptureError
        As `run_if`.

    Examples
    --------
    >>> import anabranch as ab
    >>> x, again = ab.zeros(2), ab.ones(1, "int32")
    >>> def body():
    ...     ab.fill(x, 5)
    ...     ab.fill(again, 0)
    >>> ab.run_while(again, body)
    >>> x.numpy()
    array([5., 5.], dtype=float32)
    """
    cdef Array array = _flag(flag)
    if not callable(body):
        raise TypeError(f"body must be callable, not {type(body).__name__}")
    cdef CStream* queue = _recorder(array)
    if queue != NULL:
        _add(queue, NodeKind.loop, array, body, None)
        return
    while _is_set(array):
        body()
