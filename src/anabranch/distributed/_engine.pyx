"""The base class of the engines, each of which carries out collectives over one transport."""

cimport cython
from libc.stdint cimport int64_t, uintptr_t

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport ByteRange
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.slice cimport whole_of
from anabranch._stream.stream cimport Stream
from anabranch._task.site cimport current_site, place_of

from anabranch._memory.copy import copy

# In the order of the core's `Verb`.
VERBS = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send",
    "recv", "barrier")
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
_MESSAGES = ("send", "recv", "group")

cdef set _reductions = {VERBS.index(verb) for verb in REDUCTIONS}


@cython.final
cdef class Call:
    @cython.nonecheck(True)
    def __repr__(self):
        return f"<Call {VERBS[self.verb]} of {self.count}>"

    cdef Array array(self):
        return self.receive if self.send is None else self.send

    cdef bint reduces(self):
        return self.verb in _reductions


cdef Call make_call(int verb, Array send, Array receive, bint in_place, int64_t count, str op, int peer):
    cdef Call call = Call.__new__(Call)
    call.verb = verb
    call.send = send
    call.receive = receive
    call.in_place = in_place
    call.count = count
    call.op = op
    call.peer = peer
    return call


cdef class Engine:
    def __cinit__(self):
        self.found = {}

    cdef int check(self, Call call) except -1:
        cdef Array array = call.array()
        cdef int64_t each = 1
        call.type_word = self.byte
        if array is None:
            call.words = 1  # a barrier, which may need something to send
            return 0
        if call.reduces():
            words = self.found.get((array.code, call.op))
            if words is None:
                words = self.found[array.code, call.op] = self.reduction(array._dtype, call.op)
            call.type_word, each, call.op_word = words
        else:
            each = array.layout.itemsize  # what is only moved may be of any type
        call.words = call.count * each
        return 0

    cdef tuple reduction(self, object dtype, str op):
        raise NotImplementedError

    cdef int enqueue(self, list calls, Stream stream, str name) except -1:
        cdef Batch batch
        cdef Call call
        cdef Array send
        cdef Array receive
        cdef list views = []      # private ones, which stay open
        cdef list arrived = None
        for call in calls:
            send = call.send
            receive = call.receive
            if send is not None and (not self.is_ready(send) or (receive is not None and _overlap(send, receive))):
                send = self.temporary(send, stream)
                copy(send, call.send, stream=stream)
            if receive is not None and not self.is_ready(receive):
                receive = self.temporary(receive, stream)
                if call.in_place:
                    copy(receive, call.receive, stream=stream)
                arrived = arrived or []
                arrived.append((call.receive, receive))
            _add(batch, views, call, send, receive, self.divisor(call))
        self.submit(stream, name, batch)
        if arrived is not None:
            for array, temporary in arrived:
                copy(array, temporary, stream=stream)
        return 0

    cdef bint is_ready(self, Array array):
        return array.contiguous

    cdef Array temporary(self, Array array, Stream stream):
        raise NotImplementedError

    cdef int divisor(self, Call call):
        return 0

    cdef int submit(self, Stream stream, str name, Batch& batch) except -1:
        raise NotImplementedError


# Whether two arrays share bytes, as far as their extents tell.
cdef bint _overlap(Array one, Array other):
    cdef ByteRange first = one.bytes()
    cdef ByteRange second = other.bytes()
    cdef uintptr_t base = <uintptr_t>one.storage.get().pointer()
    cdef uintptr_t other_base = <uintptr_t>other.storage.get().pointer()
    return base + first.low < other_base + second.high and other_base + second.low < base + first.high


cdef int _add(Batch& batch, list views, Call call, Array send, Array receive, int divide) except -1:
    cdef Transfer transfer
    cdef Array array
    transfer.verb = <Verb>call.verb
    transfer.count = call.words
    transfer.type = call.type_word
    transfer.op = call.op_word
    transfer.peer = call.peer
    if send is not None:
        array = whole_of(as_array(send, "x"))
        views.append(array)
        transfer.send = array.data
        batch.touches.push_back(array.touch(MemoryAccess.read))
        batch.kept.push_back(array.storage)
        batch.size += array.layout.size() * array.layout.itemsize
    if receive is not None:
        array = whole_of(as_array(receive, "out"))
        views.append(array)
        transfer.receive = array.data
        batch.touches.push_back(array.touch(MemoryAccess.read_write if call.in_place else MemoryAccess.write))
        batch.kept.push_back(array.storage)
        if send is None:
            batch.size += array.layout.size() * array.layout.itemsize
        if divide:
            batch.division.data = array.data
            batch.division.wide = array._dtype.char in "dD"
            batch.division.count = array.layout.size() * (2 if array._dtype.kind == "c" else 1)
            batch.division.by = divide
    batch.transfers.push_back(transfer)
    return 0


cdef Label label_of(str name) except *:
    cdef Label label
    label.name = name.encode()
    label.site = current_site()
    label.common = name not in _MESSAGES
    return label


cdef tuple described(const Waiting& waiting):
    file, line = place_of(waiting.label.site)
    return waiting.found, waiting.number, waiting.label.name.decode(), file, line, waiting.seconds
