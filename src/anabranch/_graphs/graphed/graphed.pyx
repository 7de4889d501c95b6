"""Functions that are captured at their first call for arguments of a kind, and replayed after."""

import collections
import functools
import threading
import types
import warnings

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize

from anabranch._core.small_vector cimport Text
from anabranch._graphs.graphed.call cimport CapturedCall, capture_call, replay_call
from anabranch._graphs.graphed.key cimport describe, is_key, kind_of_number
from anabranch._launch.constants cimport check_constants
from anabranch._memory.array cimport Array
from anabranch._task.context cimport TaskState, current_state

from anabranch._core.errors import CaptureError
from anabranch._launch.constants import Constants

cdef enum:
    # For each capture that may be kept, how many kinds that cannot be captured are remembered. To forget one means to
    # try again, which calls the function twice.
    refusals_per_capture = 64


cdef object _name_of(object fn):
    return getattr(fn, "__qualname__", None) or repr(fn)


cdef tuple _values_of(set looked, tuple args):
    # Floating point numbers by their text, which tells zeros of both signs apart and is equal for every NaN.
    return tuple([
        args[i] if isinstance(args[i], int) else repr(args[i]) for i in looked])


cdef tuple _numbers_of(tuple args):
    return tuple([i for i, each in enumerate(args) if type(each) is not Array and kind_of_number(each)])


@cython.final
cdef class _Kind:
    # Of the kinds that cannot be captured, `calls` is None.
    cdef set looked
    cdef dict calls


cdef int _become(_Kind kind, dict calls, set looked) except -1:
    # Another thread may be reading them.
    with cython.critical_section(kind):
        kind.calls, calls = calls, kind.calls
        kind.looked, looked = looked, kind.looked
    return 0


@cython.final
cdef class Graphed:
    """A function that is captured at its first call for arguments of a kind, and replayed after. See `graphed`."""
    cdef object fn
    cdef dict kinds
    cdef list order             # the captured calls, the newest last: (key, kind, values)
    cdef object refused         # the keys of the kinds that cannot be captured, the newest last
    cdef int size
    cdef object lock
    cdef object last            # the key and the kind of the last call, or None
    cdef bint warned
    cdef dict __dict__

    def __init__(self, fn, size):
        self.fn = fn
        self.kinds = {}
        self.order = []
        self.refused = collections.deque()
        self.size = size
        self.lock = threading.Lock()
        functools.update_wrapper(self, fn)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def graphs(self):
        """How many captures are kept."""
        return len(self.order)

    def clear(self):
        """Forget all captures. Replays that were launched complete."""
        with self.lock:
            self.kinds.clear()
            self.order.clear()
            self.refused.clear()
            self._remember(None)

    cdef int _remember(self, last) except -1:
        # Another thread may be reading it.
        with cython.critical_section(self):
            self.last, last = last, self.last
        return 0

    def __reduce__(self):
        # By its name, as the function that it stands for.
        return _name_of(self.fn)

    def __repr__(self):
        return f"<graphed {_name_of(self.fn)}, {self.graphs} captured>"

    def __call__(self, *args, **kwargs):
        cdef _Kind kind
        cdef CapturedCall call
        cdef dict calls
        cdef set looked
        cdef tuple names = ()
        cdef TaskState state = current_state()
        if state.capture.get() != NULL and state.capture.get().active():
            return self.fn(*args, **kwargs)
        if kwargs:
            names = tuple(kwargs)
            args += tuple(kwargs.values())
        try:
            key, kind = self._kind_of(state, args, names)
        except TypeError as error:
            self._warn(f"an argument is neither an array, a number nor hashable: {error}")
            return self._call(args, names)
        with cython.critical_section(kind):
            calls = kind.calls
            looked = kind.looked
        if calls is None:
            return self._call(args, names)
        values = _values_of(looked, args) if looked else ()
        call = calls.get(values)
        if call is None:
            try:
                outside = self._outside()
                call = capture_call(self.fn, args, names, _numbers_of(args))
                call.outside = outside
            except CaptureError as error:
                self._refuse(key, kind)
                self._warn(str(error))
                return self._call(args, names)
            except BaseException:
                self._let_go(key, kind)
                raise
            if state.races is None:
                self._keep(key, kind, call, args)
            else:
                # It may have races, which later calls are to report again.
                self._let_go(key, kind)
        elif call.outside is not None:
            check_constants(call.outside)
        done, result = replay_call(call, state, args)
        if done:
            return result
        if done is None:
            if result is not None:
                self._warn(result)
            return self._call(args, names)
        # A number that is computed from others has become one of another kind, or the last call has failed.
        self._forget(kind, values)
        return self(*args[:len(args) - len(names)], **dict(zip(names, args[len(args) - len(names):], strict=True)))

    cdef tuple _kind_of(self, TaskState state, tuple args, tuple names):
        # The key of the call's kind and the kind, a new one if there is none. Raises TypeError for what has no hash.
        cdef Text text
        cdef _Kind kind
        others = describe(&text, state, args)
        if others is None and not names:
            # Most calls are of the kind of the last one.
            with cython.critical_section(self):
                last = self.last
            if last is not None and is_key((<tuple>last)[0], &text):
                return <tuple>last
            key = PyBytes_FromStringAndSize(text.data(), text.size())
            kind = self.kinds.get(key)
            self._remember(None if kind is None else (key, kind))
        else:
            key = PyBytes_FromStringAndSize(text.data(), text.size()), names, others
            kind = self.kinds.get(key)
        if kind is None:
            kind = _Kind.__new__(_Kind)
            kind.looked = set()
            kind.calls = {}
            kind = self.kinds.setdefault(key, kind)
        return key, kind

    def _keep(self, key, _Kind kind, CapturedCall call, args):
        with self.lock:
            if kind.calls is None or self.kinds.get(key) is not kind:
                # Another thread could not capture it, or it was forgotten meanwhile, which the next call is to see.
                self._remember(None)
                return
            if call.looked - kind.looked:
                # Captures before did not know that the value matters.
                self.order[:] = [each for each in self.order if each[1] is not kind]
                _become(kind, {}, kind.looked | call.looked)
            values = _values_of(kind.looked, args)
            if values not in kind.calls:
                self.order.append((key, kind, values))
            kind.calls[values] = call
            while len(self.order) > self.size:
                key, kind, values = self.order.pop(0)
                kind.calls.pop(values, None)
                if not kind.calls and self.kinds.get(key) is kind:
                    self.kinds.pop(key)
                    self._remember(None)

    def _let_go(self, key, _Kind kind):
        # Nothing was captured that is kept. What the function was called with is kept for captures alone.
        with self.lock:
            if kind.calls is not None and not kind.calls and self.kinds.get(key) is kind:
                self.kinds.pop(key)
                self._remember(None)

    def _refuse(self, key, _Kind kind):
        with self.lock:
            _become(kind, None, kind.looked)
            self.order[:] = [each for each in self.order if each[1] is not kind]
            self.refused.append(key)
            if len(self.refused) > refusals_per_capture * self.size:
                self.kinds.pop(self.refused.popleft(), None)
                self._remember(None)

    def _forget(self, _Kind kind, values):
        with self.lock:
            self.order[:] = [each for each in self.order if each[1] is not kind or each[2] != values]
            if kind.calls is not None:
                kind.calls.pop(values, None)

    def _call(self, args, names):
        count = len(args) - len(names)
        return self.fn(*args[:count], **dict(zip(names, args[count:], strict=True)))

    def _outside(self):
        # What the function reads that is no argument.
        if type(self.fn) is not types.FunctionType:
            return None
        from anabranch.kernels._reference import outside_reads

        reads = list(outside_reads(self.fn))
        made, advice = f"{_name_of(self.fn)} was captured", f"an argument, or call {self.fn.__name__}.clear()"
        # A graph may read arrays of NumPy anew in each replay.
        return Constants(made, "the graph keeps", advice, reads, in_place=False) if reads else None

    def _warn(self, reason):
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"{_name_of(self.fn)} is not captured, it is called as it is: {reason}", RuntimeWarning, 1)


def graphed(fn=None, *, size=16):
    """Capture a function at its first call for arguments of a kind, and replay it in later ones.

    The first call captures the operations that the function enqueues in the current stream, and launches them. Later
    calls with arguments of the same kind launch them with the new arrays and numbers, without calling the function. The
    kind of an array is its device, dtype, shape, strides and which arguments share its memory. The kind of a number is
    its type, and its value only if the function uses the value: branches on it, or takes it as a size. Other arguments
    must be hashable; their kind is their value. In a capture the function is called.

    Parameters
    ----------
    fn : callable
        Everything that it does has to be work for the device: in later calls nothing else happens. Arrays that it
        returns are those of the arguments, or the graph's own, which the next call writes to again.
    size : int
        How many captures are kept; the oldest goes first.

    Returns
    -------
    callable
        Safe to use from any thread: a call is atomic, as is `clear`, though threads that bring a new kind of arguments
        at once may each capture it. `graphs` counts the captures that are kept, and `clear` forgets them. A function
        that cannot be captured is called as it is, with one RuntimeWarning that says why.

    Raises
    ------
    TypeError
        `fn` is not callable.
    ValueError
        `size` is not an int of at least 1.

    Examples
    --------
    >>> import anabranch as ab
    >>> @ab.graphed
    ... def step(x, y):
    ...     ab.copy(y, x)
    ...     ab.fill(x, 0)
    >>> a, b = ab.ones(3), ab.zeros(3)
    >>> step(a, b)
    >>> step(b, a)
    >>> a.numpy(), step.graphs
    (array([1., 1., 1.], dtype=float32), 1)
    """
    if fn is None:
        return functools.partial(graphed, size=size)
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"size is a number of captures, at least 1, not {size!r}")
    return Graphed(fn, size)
