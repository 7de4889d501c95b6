"""Functions that are captured at their first call for arguments of a kind, and replayed after."""

import functools
import types
import warnings

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from anabranch._array cimport Array
from anabranch._condition cimport Bodies
from anabranch._context cimport TaskState, current_state, enter_stream, leave_scope, use_capture
from anabranch._core cimport (
    Access, CCapture, CGraph, CStream, GraphInstance, OperationKind, Point, Ref, Storage, Touch, Works, byte_t, tracing)
from anabranch._current cimport current_stream_of
from anabranch._device cimport DeviceBase, as_device
from anabranch._dtype cimport dtype_code
from anabranch._graph cimport Graph, NodeTouch, begin_capture, instantiate, merged, origin_of, take_touches
from anabranch._grid cimport GridKernel, put_number
from anabranch._hazard cimport note, order
from anabranch._launch cimport pack_number
from anabranch._replayed cimport ReplayedFunction, expect_call, forget_call
from anabranch._scalar cimport Scalar, scalar_argument
from anabranch._stream cimport Stream
from anabranch._traced cimport show

from anabranch._errors import CaptureError

cdef extern from "patches.hpp" namespace "anabranch::python" nogil:
    cdef cppclass Pointer:
        uint32_t argument
        int64_t offset
    cdef cppclass Slot "anabranch::python::NodePatch::Slot":
        Slot()
        uint32_t slot
        Pointer pointer
    cdef cppclass Number "anabranch::python::NodePatch::Number":
        Number()
        uint32_t slot
        uint32_t words
        size_t first
    cdef cppclass NodePatch:
        NodePatch()
        uint32_t node
        vector[Slot] slots
        vector[Number] numbers
        cbool has_dst
        cbool has_src
        Pointer dst
        Pointer src
        Ref[Patches] body
        Ref[Patches] otherwise
    cdef cppclass Patches:
        vector[NodePatch] nodes
    Ref[Patches] make_patches() except +
    Point launch_call(
        GraphInstance&, CStream&, Point, const Patches&, const vector[byte_t*]&, const vector[uint64_t]&
    ) except +
    byte_t* destination(const Works&, uint32_t)
    byte_t* source(const Works&, uint32_t)

cdef extern from *:
    """
    #include "graphs.hpp"
    static anabranch::Storage* storage_of(const anabranch::NodeTouch& touch) { return touch.storage.get(); }
    static std::uint32_t node_of(const anabranch::NodeTouch& touch) { return touch.node; }
    static bool is_write(const anabranch::NodeTouch& touch) { return anabranch::writes(touch.access); }
    """
    Storage* storage_of(const NodeTouch&)
    uint32_t node_of(const NodeTouch&)
    cbool is_write(const NodeTouch&)

cdef enum:
    # What the key says an argument is, from where dtypes end.
    int_kind = 0x80
    large_int_kind
    float_kind
    bool_kind
    complex_kind
    numpy_kind = 0xA0

cdef object _numpy_scalar = None
cdef tuple _nothing = (True, None)


cdef int _kind_of_number(object value) except -1:
    # 0: not a number.
    global _numpy_scalar
    kind = type(value)
    if kind is float:
        return float_kind
    if kind is int:
        return int_kind if -(2**63) <= value < 2**63 else large_int_kind
    if kind is bool:
        return bool_kind
    if kind is complex:
        return complex_kind
    if _numpy_scalar is None:
        import numpy

        _numpy_scalar = numpy.number | numpy.bool_
    if isinstance(value, _numpy_scalar):
        try:
            return numpy_kind + dtype_code(value.dtype)
        except KeyError:
            return 0
    return 0


cdef struct AccessOfCall:
    int argument        # of which argument's memory, or -1
    Storage* storage    # else what
    int64_t low         # from the argument's first element, or in the storage
    int64_t high
    Access access


@cython.final
cdef class CapturedCall:
    """A function as it was captured for arguments of a kind."""
    cdef Ref[GraphInstance] core
    cdef Ref[Patches] patches
    cdef DeviceBase device
    cdef vector[int] arguments          # the position of the first array of each block of memory
    cdef vector[AccessOfCall] accesses
    cdef vector[Ref[Storage]] kept
    cdef list numbers                   # for each number that a node is given: scalar, kernel, parameter, what it was
    cdef size_t words
    cdef list functions
    cdef object result                  # a function of the arguments, or None
    cdef set looked


cdef class _Kind:
    # Of the kinds that cannot be captured, `calls` is None.
    cdef set looked
    cdef dict calls


@cython.final
cdef class Graphed:
    """A function that is captured at its first call for arguments of a kind, and replayed after. See `graphed`."""
    cdef object fn
    cdef dict kinds
    cdef list order             # the captured calls, the newest last: (kind, values)
    cdef int size
    cdef bint warned
    cdef dict __dict__

    def __init__(self, fn, size):
        self.fn = fn
        self.kinds = {}
        self.order = []
        self.size = size
        functools.update_wrapper(self, fn)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def graphs(self):
        """How many captures are kept."""
        return len(self.order)

    def clear(self):
        """Forget all captures. Replays that were launched complete."""
        self.kinds = {}
        self.order = []

    def __repr__(self):
        return f"<graphed {self.fn.__qualname__}, {self.graphs} captured>"

    def __call__(self, *args, **kwargs):
        cdef _Kind kind
        cdef CapturedCall call
        cdef tuple names = ()
        cdef TaskState state = current_state()
        if state.capture.get() != NULL and state.capture.get().active():
            return self.fn(*args, **kwargs)
        if kwargs:
            names = tuple(kwargs)
            args += tuple(kwargs.values())
        try:
            key = _key(state, args, names)
            kind = self.kinds.get(key)
        except TypeError as error:
            self._warn(f"an argument is neither an array, a number nor hashable: {error}")
            return self._call(args, names)
        if kind is None:
            kind = _Kind.__new__(_Kind)
            kind.looked = set()
            kind.calls = {}
            kind = self.kinds.setdefault(key, kind)
        if kind.calls is None:
            return self._call(args, names)
        values = tuple([args[i] for i in kind.looked]) if kind.looked else ()
        call = kind.calls.get(values)
        if call is None:
            try:
                call = _capture(self.fn, args, names)
            except CaptureError as error:
                kind.calls = None
                self._warn(str(error))
                return self._call(args, names)
            self._keep(key, kind, call, args)
        done, result = _replay(call, state, args)
        if done:
            return result
        # A number that is computed from others has become one of another kind.
        kind.calls.pop(values, None)
        self.order.remove((kind, values))
        return self(*args[:len(args) - len(names)], **dict(zip(names, args[len(args) - len(names):], strict=True)))

    def _keep(self, key, _Kind kind, CapturedCall call, args):
        if call.looked - kind.looked:
            # Captures before did not know that the value matters.
            self.order = [each for each in self.order if each[0] is not kind]
            kind.calls = {}
            kind.looked = kind.looked | call.looked
        values = tuple([args[i] for i in kind.looked])
        kind.calls[values] = call
        self.order.append((kind, values))
        while len(self.order) > self.size:
            oldest, values = self.order.pop(0)
            (<_Kind>oldest).calls.pop(values, None)

    def _call(self, args, names):
        count = len(args) - len(names)
        return self.fn(*args[:count], **dict(zip(names, args[count:], strict=True)))

    def _warn(self, reason):
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.fn.__qualname__} is not captured, it is called as it is: {reason}", RuntimeWarning, 3)


cdef object _key(TaskState state, tuple args, tuple names):
    # What captures have to be told apart by; TypeError for what cannot be.
    cdef vector[char] key
    cdef vector[Storage*] seen
    cdef vector[char*] first
    cdef Array array
    cdef Storage* storage
    cdef size_t group
    cdef int64_t offset
    cdef int d
    cdef int code
    others = None
    key.push_back(state.mode)
    key.push_back(state.device)
    for each in args:
        if type(each) is not Array:
            code = _kind_of_number(each)
            key.push_back(code)
            if code == 0:
                hash(each)
                others = [] if others is None else others
                others.append((type(each), each))
            continue
        array = <Array>each
        array.check()
        storage = array.storage.get()
        group = 0
        while group < seen.size() and seen[group] != storage:
            group += 1
        key.push_back(1 + array.code)
        key.push_back(array._device.ordinal)
        key.push_back(<char>group)
        key.push_back(<char>(array.layout.ndim | (0x40 if array.contiguous else 0)))
        key.push_back(<char>((2 if storage.read_only() else 0) | (<int>storage.kind() << 2)))
        for d in range(array.layout.ndim):
            _put(&key, array.layout.shape[d])
            if not array.contiguous:
                _put(&key, array.layout.strides[d])
        if group < seen.size():
            offset = array.data - first[group]
            _put(&key, offset)
        else:
            seen.push_back(storage)
            first.push_back(array.data)
    text = PyBytes_FromStringAndSize(key.data(), key.size())
    return text if others is None and not names else (text, names, None if others is None else tuple(others))


cdef inline void _put(vector[char]* key, int64_t value) noexcept:
    key.insert(key.end(), <char*>&value, <char*>&value + sizeof(value))


# -- the first call --

cdef Array _stand_in(Array array, Ref[Storage] storage):
    cdef Array made = Array.__new__(Array)
    made.storage = storage
    made._device = array._device
    made.layout = array.layout
    made.data = array.data
    made._dtype = array._dtype
    made.code = array.code
    made.contiguous = array.contiguous
    return made


cdef CapturedCall _capture(object fn, tuple args, tuple names):
    cdef CapturedCall call = CapturedCall.__new__(CapturedCall)
    cdef vector[Ref[Storage]] aliases
    cdef vector[char*] firsts
    cdef Ref[CCapture] capture
    cdef Ref[CCapture] none
    cdef Ref[CGraph] graph
    cdef Ref[Works] works
    cdef vector[NodeTouch] accesses
    cdef Array array
    cdef size_t i
    call.looked = set()
    stand_ins = []
    for position, each in enumerate(args):
        if type(each) is not Array:
            number = _kind_of_number(each) != 0
            stand_ins.append(scalar_argument(each, position, call.looked) if number else each)
            continue
        array = <Array>each
        if call.device is None:
            call.device = array._device
        i = 0
        while i < aliases.size() and aliases[i].get().original().get() != array.storage.get():
            i += 1
        if i == aliases.size():
            aliases.push_back(Storage.alias(array.storage))
            call.arguments.push_back(position)
            firsts.push_back(array.data)
        stand_ins.append(_stand_in(array, aliases[i]))
    if call.device is None:
        call.device = as_device(None)
    cdef Stream stream = Stream(call.device, name="graphed")
    owner = object()
    capture = begin_capture(deref(stream.get()))
    capture.get().make_exclusive()
    enter_stream(owner, call.device.ordinal, stream)
    use_capture(capture)
    count = len(args) - len(names)
    try:
        result = fn(*stand_ins[:count], **dict(zip(names, stand_ins[count:], strict=True)))
        graph = capture.get().end(works)
    except BaseException as error:
        capture.get().abandon(f"{type(error).__name__}: {error}".encode())
        raise
    finally:
        use_capture(none)
        leave_scope(owner)
    accesses = take_touches(deref(graph.get()))
    call.numbers = []
    call.functions = []
    call.patches = _patches(call, graph, works, accesses, aliases, firsts)
    _list_accesses(call, accesses, aliases, firsts)
    call.result = _result_of(result, args, stand_ins, aliases, firsts, call)
    for each in stand_ins:
        if type(each) is Array:
            (<Array>each).storage.reset()
    call.core = instantiate(graph, works)
    return call


cdef int _argument_of(Storage* storage, const vector[Ref[Storage]]& aliases) noexcept:
    cdef size_t i
    for i in range(aliases.size()):
        if aliases[i].get() == storage:
            return i
    return -1


cdef Ref[Patches] _patches(
        CapturedCall call, Ref[CGraph] graph, Ref[Works] works, const vector[NodeTouch]& accesses,
        const vector[Ref[Storage]]& aliases, const vector[char*]& firsts) except *:
    cdef Ref[Patches] patches = make_patches()
    cdef NodePatch patch
    cdef NodePatch empty
    cdef Bodies bodies
    cdef size_t i, k
    cdef int argument
    for i in range(graph.get().nodes.size()):
        patch = empty
        patch.node = i
        origin = origin_of(graph.get().nodes[i])
        if isinstance(origin, tuple):
            _patch_launch(call, &patch, origin[0], origin[3], aliases, firsts)
        elif isinstance(origin, ReplayedFunction):
            call.functions.append(origin)
        elif isinstance(origin, Bodies):
            bodies = origin
            call.functions += bodies.functions()
            argument = _argument_of(bodies.flag.storage.get(), aliases)
            if argument >= 0:
                patch.has_src = True
                patch.src.argument = argument
                patch.src.offset = bodies.flag.data - firsts[argument]
            patch.body = _patches(call, bodies.then.graph, bodies.then.works, bodies.then.accesses, aliases, firsts)
            if bodies.otherwise is not None:
                patch.otherwise = _patches(
                    call, bodies.otherwise.graph, bodies.otherwise.works, bodies.otherwise.accesses, aliases, firsts)
        elif origin is None:
            for k in range(accesses.size()):
                if node_of(accesses[k]) != i:
                    continue
                argument = _argument_of(storage_of(accesses[k]), aliases)
                if argument < 0:
                    continue
                if is_write(accesses[k]):
                    patch.has_dst = True
                    patch.dst.argument = argument
                    patch.dst.offset = <char*>destination(deref(works.get()), i) - firsts[argument]
                else:
                    patch.has_src = True
                    patch.src.argument = argument
                    patch.src.offset = <char*>source(deref(works.get()), i) - firsts[argument]
        elif isinstance(origin, Graph):
            call.functions += (<Graph>origin).functions
        if (patch.slots.size() or patch.numbers.size() or patch.has_dst or patch.has_src or
                (patch.body.get() != NULL and patch.body.get().nodes.size()) or
                (patch.otherwise.get() != NULL and patch.otherwise.get().nodes.size())):
            patches.get().nodes.push_back(patch)
    return patches


cdef int _patch_launch(
        CapturedCall call, NodePatch* patch, object kernel, tuple marks, const vector[Ref[Storage]]& aliases,
        const vector[char*]& firsts) except -1:
    cdef Slot slot
    cdef Number number
    cdef Scalar scalar
    cdef uint64_t[2] packed
    cdef bint grid = isinstance(kernel, GridKernel)
    for position, at, mark in marks:
        if grid:
            at = (<GridKernel>kernel).rules[<size_t>position].slot
        if type(mark) is Array:
            slot.slot = at
            slot.pointer.argument = _argument_of((<Array>mark).storage.get(), aliases)
            slot.pointer.offset = (<Array>mark).data - firsts[slot.pointer.argument]
            patch.slots.push_back(slot)
            continue
        scalar = mark
        number.slot = at
        number.first = call.words
        if grid:
            number.words = ((<GridKernel>kernel).rules[<size_t>position].size + 7) // 8
            what = None
        else:
            what = pack_number(kernel, position, scalar.value, packed)
            number.words = 2 if isinstance(scalar.value, complex) else 1
        call.words += number.words
        call.numbers.append((scalar, kernel, position, what))
        patch.numbers.push_back(number)
    return 0


cdef int _list_accesses(
        CapturedCall call, const vector[NodeTouch]& accesses, const vector[Ref[Storage]]& aliases,
        const vector[char*]& firsts) except -1:
    cdef vector[Touch] touches = merged(accesses)
    cdef AccessOfCall access
    cdef size_t i
    cdef int64_t start
    for i in range(touches.size()):
        access.argument = _argument_of(touches[i].storage, aliases)
        access.storage = touches[i].storage
        access.access = touches[i].access
        start = 0
        if access.argument >= 0:
            start = firsts[access.argument] - <char*>touches[i].storage.pointer()
        else:
            call.kept.push_back(Ref[Storage].share(touches[i].storage))
        access.low = <int64_t>touches[i].low - start
        access.high = <int64_t>touches[i].high - start
        call.accesses.push_back(access)
    return 0


# -- what it returns --

cdef object _result_of(
        object result, tuple args, list stand_ins, const vector[Ref[Storage]]& aliases, const vector[char*]& firsts,
        CapturedCall call):
    # A function of a call's arguments that returns what the captured call did; None if that is None.
    cdef int argument
    if result is None:
        return None
    if type(result) is Scalar:
        return functools.partial(_scalar_of, result)
    if type(result) is tuple or type(result) is list:
        parts = [_result_of(each, args, stand_ins, aliases, firsts, call) for each in result]
        return lambda given, kind=type(result): kind([None if part is None else part(given) for part in parts])
    if type(result) is dict:
        named = {name: _result_of(each, args, stand_ins, aliases, firsts, call) for name, each in result.items()}
        return lambda given: {name: None if part is None else part(given) for name, part in named.items()}
    if type(result) is Array:
        for i, each in enumerate(stand_ins):
            if each is result:
                return lambda given, i=i: given[i]
        argument = _argument_of((<Array>result).storage.get(), aliases)
        if argument >= 0:
            view = _stand_in(<Array>result, aliases[argument])
            (<Array>view).storage.reset()
            return functools.partial(
                _view_of, view, call.arguments[argument], (<Array>result).data - firsts[argument])
    return lambda given: result


def _scalar_of(Scalar scalar, args):
    return scalar.of(args)


def _view_of(Array like, position, offset, args):
    cdef Array array = args[position]
    cdef Array view = _stand_in(like, array.storage)
    view.data = array.data + <int64_t>offset
    return view


# -- the calls after --

cdef int _pack(CapturedCall call, tuple args, vector[uint64_t]* numbers) except -1:
    cdef vector[uint64_t] slots
    cdef uint64_t[2] packed
    cdef Scalar scalar
    cdef size_t word
    cdef uint32_t size
    for scalar, kernel, position, what in call.numbers:
        value = scalar.of(args)
        if what is None:
            slots.resize((<GridKernel>kernel).slot_count)
            put_number(<GridKernel>kernel, position, value, slots.data())
            size = ((<GridKernel>kernel).rules[<size_t>position].size + 7) // 8
            for word in range(size):
                numbers.push_back(slots[(<GridKernel>kernel).rules[<size_t>position].slot + word])
            continue
        if pack_number(kernel, position, value, packed) != what:
            return 1
        numbers.push_back(packed[0])
        if isinstance(value, complex):
            numbers.push_back(packed[1])
    return 0


cdef tuple _replay(CapturedCall call, TaskState state, tuple args):
    cdef GraphInstance* core = call.core.get()
    cdef Stream stream = current_stream_of(state, call.device.ordinal)
    cdef CStream* queue = stream.get()
    cdef vector[byte_t*] arguments
    cdef vector[uint64_t] numbers
    cdef vector[Touch] touches
    cdef Touch touch
    cdef Array array
    cdef Point begun
    cdef Point point
    cdef int64_t start
    cdef size_t i
    arguments.reserve(call.arguments.size())
    for i in range(call.arguments.size()):
        arguments.push_back(<byte_t*>(<Array>args[call.arguments[i]]).data)
    if _pack(call, args, &numbers):
        return False, None
    touches.reserve(call.accesses.size())
    touch.layout = NULL
    touch.first = 0
    for i in range(call.accesses.size()):
        start = 0
        touch.storage = call.accesses[i].storage
        if call.accesses[i].argument >= 0:
            array = <Array>args[call.arguments[call.accesses[i].argument]]
            touch.storage = array.storage.get()
            start = array.data - <char*>touch.storage.pointer()
        touch.low = start + call.accesses[i].low
        touch.high = start + call.accesses[i].high
        touch.access = call.accesses[i].access
        touches.push_back(touch)
    begun = core.begin(deref(queue))
    order(state, queue, touches.data(), touches.size())
    expected = [expect_call(function, queue, state.mode) for function in call.functions] if call.functions else None
    try:
        point = launch_call(deref(core), deref(queue), begun, deref(call.patches.get()), arguments, numbers)
    except BaseException:
        if expected is not None:
            for each in expected:
                forget_call(each)
        raise
    if tracing():
        show(queue, point, OperationKind.graph, None, 0)
    note(state, queue, point, touches.data(), touches.size())
    core.note(deref(queue))
    return _nothing if call.result is None else (True, call.result(args))


def graphed(fn=None, *, size=16):
    """Capture a function at its first call for arguments of a kind, and replay it in later ones.

    The first call captures what the function puts into the current stream, and launches it; later calls with arguments
    of that kind launch it with the new arrays and numbers, and do not call the function. Of what kind an array is, its
    device, dtype, shape and strides say, and which arguments share memory; of a number its type, and its value only if
    the function looks at that: branches by it, or takes it for a size. What else is passed has to be hashable, and is
    told apart by its value. In a capture the function is called.

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
        Safe to use from any thread. `graphs` counts the captures that are kept, and `clear` forgets them. A function
        that cannot be captured is called as it is, with one RuntimeWarning that says why.

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
