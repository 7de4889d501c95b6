"""Calls of a function as graphs: captured once, and launched with the arguments of other calls."""

import gc

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CCapture, CStream, HazardMode, OperationKind, Point, Ref, Storage, Touch, as_context, byte_t)
from anabranch._core.graph cimport (
    CGraph, GraphAccesses, GraphInstance, NodeTouch, Works, begin_capture, end_capture, forget_origins, instantiate,
    merged, origin_of, share_bytes, take_accesses)
from anabranch._core.small_vector cimport Words
from anabranch._device.device cimport DeviceBase, as_device
from anabranch._graphs.conditions cimport Bodies, Body
from anabranch._graphs.graphed.patches cimport (
    NodePatch, Number, Patches, Slot, destination, is_write, launch_call, make_patches, node_of, source, storage_of)
from anabranch._graphs.graphed.result cimport argument_of, result_of, stand_in
from anabranch._hazards.ordering cimport KeptMemory, Submission, begin, commit_traced
from anabranch._launch.grid cimport GridKernel
from anabranch._launch.packing cimport pack_number, words_of
from anabranch._launch.parameters cimport put_declared
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType, Item, encode
from anabranch._memory.traced_scalar cimport TracedScalar, scalar_argument
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.host_node cimport (
    ReplayContext, ReplayedFunction, context_of_replay, note_replay, refuse_reserved)
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, enter_device, enter_stream, leave_scope, use_capture

from anabranch._core.errors import CaptureError, text_of

cdef enum:
    few = 16


@cython.final
cdef class CapturedCall:
    pass


# -- the first call --

cdef list _stand_ins_of(
        CapturedCall call, tuple args, tuple numbers, vector[Ref[Storage]]& aliases, vector[char*]& firsts):
    # The arguments of the captured call: arrays over aliases, one for each storage, and traced numbers.
    cdef Array array
    cdef size_t i
    stand_ins = []
    for position, each in enumerate(args):
        if type(each) is not Array:
            stand_ins.append(scalar_argument(each, position, call.looked) if position in numbers else each)
            continue
        array = <Array>each
        array.check()  # code that ran for earlier arguments may have closed it
        if call.device is None:
            call.device = array._device
        i = 0
        while i < aliases.size() and aliases[i].get().original().get() != array.storage.get():
            i += 1
        if i == aliases.size():
            aliases.push_back(Storage.alias(array.storage))
            call.arguments.push_back(position)
            firsts.push_back(array.data)
        stand_ins.append(stand_in(array, aliases[i]))
    return stand_ins


cdef CapturedCall capture_call(object fn, tuple args, tuple names, tuple numbers):
    cdef CapturedCall call = CapturedCall.__new__(CapturedCall)
    cdef vector[Ref[Storage]] aliases
    cdef vector[char*] firsts
    cdef Ref[CCapture] capture, none
    cdef Ref[CGraph] graph
    cdef Ref[Works] works
    cdef GraphAccesses accesses, nothing
    call.looked = set()
    cdef list stand_ins = _stand_ins_of(call, args, numbers, aliases, firsts)
    if call.device is None:
        call.device = as_device(None)
    cdef Stream stream = Stream(call.device, name="graphed")
    cdef DeviceBase current
    owner = object()
    capture = begin_capture(deref(stream.get()))
    capture.get().make_exclusive()
    current = as_device(None)
    enter_stream(owner, call.device.ordinal, stream)
    if current is not call.device:
        enter_device(stream, current.ordinal)  # as without a capture; ends with the stream's scope
    use_capture(capture)
    count = len(args) - len(names)
    try:
        result = fn(*stand_ins[:count], **dict(zip(names, stand_ins[count:], strict=True)))
        graph = end_capture(deref(capture.get()), works)
    except BaseException as error:
        capture.get().abandon(text_of(error).encode(errors="backslashreplace"))
        raise
    finally:
        use_capture(none)
        leave_scope(owner)
    accesses = take_accesses(deref(graph.get()))
    call.numbers = []
    call.packed = {}
    call.functions = []
    call.patches = _patches(call, graph, works, accesses.touches, aliases, firsts)
    _list_accesses(call, accesses.touches, aliases, firsts)
    call.result = result_of(result, stand_ins, aliases, firsts, call.arguments)
    for each in stand_ins:
        if type(each) is Array:
            (<Array>each).let_go()
    # Origins refer to views of the arguments.
    forget_origins(deref(graph.get()), deref(works.get()))
    accesses = nothing
    result = None
    if _has_others(aliases):
        gc.collect()
        if _has_others(aliases):
            raise CaptureError("it keeps a view of an argument, which in later calls would be another array's")
    call.core = instantiate(graph, works)
    return call


cdef bint _has_others(const vector[Ref[Storage]]& aliases) noexcept:
    cdef size_t i
    for i in range(aliases.size()):
        if not aliases[i].get().unique():
            return True
    return False


cdef bint _of_an_argument(Storage* storage, const vector[Ref[Storage]]& aliases) noexcept:
    cdef size_t i
    for i in range(aliases.size()):
        if share_bytes(deref(aliases[i].get()), deref(storage)):
            return True
    return False


cdef Ref[Patches] _patches(
        CapturedCall call, Ref[CGraph] graph, Ref[Works] works, const vector[NodeTouch]& accesses,
        const vector[Ref[Storage]]& aliases, const vector[char*]& firsts) except *:
    cdef Ref[Patches] patches = make_patches()
    cdef NodePatch patch
    cdef NodePatch empty
    cdef Bodies bodies
    cdef size_t i
    cdef int argument
    for i in range(graph.get().nodes.size()):
        patch = empty
        patch.node = i
        origin = origin_of(graph.get().nodes[i])
        if isinstance(origin, tuple):
            if type(origin[0]) is TracedScalar:
                _patch_value(call, &patch, origin[0], origin[1])
                _patch_memory(&patch, works, accesses, aliases, firsts)
            else:
                _patch_launch(call, &patch, origin[0], origin[1], aliases, firsts)
        elif origin is None:
            _patch_memory(&patch, works, accesses, aliases, firsts)
        elif isinstance(origin, ReplayedFunction):
            call.functions.append(origin)
        elif isinstance(origin, Bodies):
            bodies = origin
            call.functions += bodies.functions()
            argument = argument_of(bodies.flag.storage.get(), aliases)
            if argument >= 0:
                patch.has_src = True
                patch.src.argument = argument
                patch.src.offset = bodies.flag.data - firsts[argument]
            patch.body = _patches_of_body(call, bodies.then, aliases, firsts)
            if bodies.otherwise is not None:
                patch.otherwise = _patches_of_body(call, bodies.otherwise, aliases, firsts)
        elif isinstance(origin, list):
            refuse_reserved(origin, "a graphed function")
            call.functions += origin
        if (patch.slots.size() or patch.numbers.size() or patch.has_dst or patch.has_src or
                (patch.body.get() != NULL and patch.body.get().nodes.size()) or
                (patch.otherwise.get() != NULL and patch.otherwise.get().nodes.size())):
            patches.get().nodes.push_back(patch)
    return patches


cdef Ref[Patches] _patches_of_body(
        CapturedCall call, Body body, const vector[Ref[Storage]]& aliases, const vector[char*]& firsts) except *:
    return _patches(call, body.graph, body.works, body.accesses.touches, aliases, firsts)


cdef int _patch_memory(
        NodePatch* patch, Ref[Works] works, const vector[NodeTouch]& accesses, const vector[Ref[Storage]]& aliases,
        const vector[char*]& firsts) except -1:
    # Where a copy or fill has its elements.
    cdef size_t i
    cdef int argument
    for i in range(accesses.size()):
        argument = argument_of(storage_of(accesses[i]), aliases) if node_of(accesses[i]) == patch.node else -1
        if argument < 0:
            continue
        if is_write(accesses[i]):
            patch.has_dst = True
            patch.dst.argument = argument
            patch.dst.offset = <char*>destination(deref(works.get()), patch.node) - firsts[argument]
        else:
            patch.has_src = True
            patch.src.argument = argument
            patch.src.offset = <char*>source(deref(works.get()), patch.node) - firsts[argument]
    return 0


cdef int _patch_value(CapturedCall call, NodePatch* patch, TracedScalar scalar, ElementType type_) except -1:
    cdef Number number
    number.slot = 0
    number.words = 2
    number.first = call.words
    patch.numbers.push_back(number)
    call.words += 2
    call.numbers.append((scalar, None, type_, None))
    return 0


cdef int _patch_launch(
        CapturedCall call, NodePatch* patch, object kernel, tuple marks, const vector[Ref[Storage]]& aliases,
        const vector[char*]& firsts) except -1:
    cdef Slot slot
    cdef Number number
    cdef TracedScalar scalar
    cdef uint64_t[2] packed
    cdef bint grid = isinstance(kernel, GridKernel)
    for position, at, mark in marks:
        if grid:
            at = (<GridKernel>kernel).rules[<size_t>position].slot
        if type(mark) is Array:
            slot.slot = at
            slot.pointer.argument = argument_of((<Array>mark).storage.get(), aliases)
            slot.pointer.offset = (<Array>mark).data - firsts[slot.pointer.argument]
            patch.slots.push_back(slot)
            continue
        scalar = mark
        number.slot = at
        number.first = call.words
        known = call.packed.get((id(scalar), id(kernel), position))
        if known is not None:
            number.first, number.words = known
            patch.numbers.push_back(number)
            continue
        if grid:
            number.words = ((<GridKernel>kernel).rules[<size_t>position].size + 7) // 8
            what = None
        else:
            what = pack_number(kernel, position, scalar.value, packed)
            number.words = words_of(what)
        call.packed[id(scalar), id(kernel), position] = number.first, number.words
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
        access.argument = argument_of(touches[i].storage, aliases)
        access.storage = touches[i].storage
        access.access = touches[i].access
        start = 0
        if access.argument >= 0:
            start = firsts[access.argument] - <char*>touches[i].storage.pointer()
        else:
            if _of_an_argument(touches[i].storage, aliases):
                raise CaptureError("an argument is memory that the function has from elsewhere, too")
            call.kept.push_back(Ref[Storage].share(touches[i].storage))
        access.low = <int64_t>touches[i].low - start
        access.high = <int64_t>touches[i].high - start
        call.accesses.push_back(access)
    return 0


# -- the calls after --

cdef int _pack(CapturedCall call, tuple args, Words* numbers) except -1:
    cdef Words slots
    cdef uint64_t[2] packed
    cdef Item item
    cdef TracedScalar scalar
    cdef uint64_t* slot
    cdef size_t words
    for scalar, kernel, position, what in call.numbers:
        value = scalar.of(args)
        if kernel is None:
            encode(value, <ElementType>position, &item)
            numbers.push_back(<uint64_t>item.bytes[0])
            numbers.push_back(<uint64_t>item.bytes[1])
            continue
        if what is None:
            if slots.size() < (<GridKernel>kernel).slot_count:
                slots.extend((<GridKernel>kernel).slot_count - slots.size())
            slot = slots.data() + (<GridKernel>kernel).rules[<size_t>position].slot
            words = ((<GridKernel>kernel).rules[<size_t>position].size + 7) // 8
            # Clears the unused bytes of the last word, because whole words are compared.
            memset(slot, 0, 8 * words)
            put_declared(
                kernel, &(<GridKernel>kernel).rules[<size_t>position], position, value, slots.data())
            memcpy(numbers.extend(words), slot, 8 * words)
            continue
        if pack_number(kernel, position, value, packed) != what:
            return 1
        numbers.push_back(packed[0])
        if words_of(what) == 2:
            numbers.push_back(packed[1])
    return 0


cdef inline void _fill_touches(CapturedCall call, tuple args, Touch* touches) noexcept:
    cdef Touch* touch
    cdef Array array
    cdef int64_t start
    cdef size_t i
    for i in range(call.accesses.size()):
        touch = &touches[i]
        touch.storage, touch.access = call.accesses[i].storage, call.accesses[i].access
        touch.layout = NULL
        touch.first, touch.overwrites = 0, False
        start = 0
        if call.accesses[i].argument >= 0:
            array = <Array>args[call.arguments[call.accesses[i].argument]]
            touch.storage = array.storage.get()
            start = array.data - <char*>touch.storage.pointer()
        touch.low = start + call.accesses[i].low
        touch.high = start + call.accesses[i].high


cdef tuple replay_call(CapturedCall call, TaskState state, tuple args):
    cdef GraphInstance* core = call.core.get()
    cdef Stream stream = current_stream_of(state, call.device.ordinal)
    cdef CStream* queue = stream.get()
    cdef (byte_t*)[few] some_arguments
    cdef vector[byte_t*] many_arguments
    cdef byte_t** arguments = some_arguments
    cdef Words numbers
    cdef Touch[few] some_touches
    cdef vector[Touch] many_touches
    cdef Touch* touches = some_touches
    cdef Array array
    cdef ReplayContext context = None
    cdef Submission submission
    cdef Point point
    cdef KeptMemory _memory
    cdef size_t i, k
    cdef bint fits = True
    cdef tuple result = (True, None)
    if queue.capture() != NULL:
        return None, None  # another task captures the stream, and takes what the function enqueues
    if call.kept.size() and core.has_failed_elsewhere(deref(queue)):
        return False, None  # its own memory has what that replay left; a new capture has its own
    if call.arguments.size() > few:
        many_arguments.resize(call.arguments.size())
        arguments = many_arguments.data()
    if call.accesses.size() > few:
        many_touches.resize(call.accesses.size())
        touches = many_touches.data()
    if call.numbers:
        fits = not _pack(call, args, &numbers)
    if fits and call.result is not None:
        result = True, call.result(args)
    # Python code may have closed arrays up to here: the function in its first call, comparisons of arguments,
    # conversions of numbers, finalizers.
    for i in range(call.arguments.size()):
        array = <Array>args[call.arguments[i]]
        array.check()
        for k in range(call.kept.size()):
            # The graph has no order between an argument and memory that the function gets from elsewhere.
            if share_bytes(deref(call.kept[k].get()), deref(array.storage.get())):
                return None, "an argument is memory that the function has from elsewhere, too"
        arguments[i] = <byte_t*>array.data
    if not fits:
        return False, None
    _fill_touches(call, args, touches)
    if state.mode == <int>HazardMode.check:
        core.follow(deref(queue))
    begin(&submission, state, queue, touches, call.accesses.size())
    if call.functions:
        _memory = KeptMemory(touches, call.accesses.size())
        context = context_of_replay(queue, state.mode)  # an object, so that a finalizer may close arrays
    point = launch_call(
        deref(core), deref(queue), as_context(context), deref(call.patches.get()), arguments, call.arguments.size(),
        numbers.data(), numbers.size())
    note_replay(context, state.mode)
    commit_traced(&submission, state, queue, point, OperationKind.graph, 0)
    if state.mode != <int>HazardMode.off:
        core.note(deref(queue))
    return result
