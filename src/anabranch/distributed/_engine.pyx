"""The base class of the engines, each of which carries out collectives over one transport."""

cimport cython
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport Layout, byte_t
from anabranch._memory.array cimport Array, as_array
from anabranch._stream.stream cimport Stream
from anabranch._task.site cimport current_site, place_of

from anabranch._memory.copy import copy

cdef extern from "anabranch/memory/layout.hpp" namespace "anabranch" nogil:
    cbool overlap(const byte_t*, const Layout&, const byte_t*, const Layout&)

# In the order of the core's `Verb`.
VERBS = tuple([name_of(<Verb>number).decode() for number in range(<int>Verb.barrier + 1)])
OPS = ("sum", "prod", "min", "max", "avg")

cdef const char* _group = "group"
cdef dict _op_numbers = {op: number for number, op in enumerate(OPS)}


@cython.final
@cython.freelist(8)
cdef class Call:
    @cython.nonecheck(True)
    def __repr__(self):
        return f"<Call {name_of(self.verb).decode()} of {self.count}>"

    cdef Array array(self):
        return self.receive if self.send is None else self.send


cdef Call make_call(Verb verb, Array send, Array receive, bint in_place, int64_t count, int op, int peer):
    cdef Call call = Call.__new__(Call)
    call.verb = verb
    call.send = send
    call.receive = receive
    call.in_place = in_place
    call.count = count
    call.op = op
    call.peer = peer
    return call


cdef int op_number(object op) except -1:
    number = _op_numbers.get(op) if isinstance(op, str) else None
    if number is None:
        raise ValueError(f"op is one of {', '.join(map(repr, OPS))}, not {op!r}")
    return number


cdef class Engine:
    cdef int check(self, Call call) except -1:
        cdef Array array = call.array()
        cdef Words* words
        call.type_word = self.byte
        if array is None:
            call.words = 1  # a barrier, which may need something to send
        elif call.op < 0:
            call.words = call.count * array.layout.itemsize  # what is only moved may be of any type
        else:
            words = &self.found[array.code][call.op]
            if not words.known:
                words.type, words.each, words.op = self.reduction(array._dtype, OPS[call.op])
                words.known = True
            call.type_word = words.type
            call.words = call.count * words.each
            call.op_word = words.op
        return 0

    cdef tuple reduction(self, object dtype, str op):
        raise NotImplementedError

    cdef int enqueue(self, list calls, Stream stream, bint grouped) except -1:
        cdef Batch batch
        cdef Label label
        cdef Call call
        cdef Array send
        cdef Array receive
        cdef list temporaries = None  # and what they are for
        for call in calls:
            send = call.send
            receive = call.receive
            if send is not None and (not self.is_ready(send) or _is_received(calls, send)):
                send = self.temporary(send, stream)
                copy(send, call.send, stream=stream)
                temporaries = temporaries or []
                temporaries.append((None, send))
            if receive is not None and not self.is_ready(receive):
                receive = self.temporary(receive, stream)
                if call.in_place:
                    copy(receive, call.receive, stream=stream)
                temporaries = temporaries or []
                temporaries.append((call.receive, receive))
            _add(batch, call, send, receive, self.divisor(call))
            label.name = _group if grouped else name_of(call.verb)
            label.common = not grouped and call.verb != Verb.send and call.verb != Verb.receive
        label.site = current_site()
        self.submit(stream, label, batch)
        if temporaries is not None:
            for array, temporary in temporaries:
                if array is not None:
                    copy(array, temporary, stream=stream)
        return 0

    cdef bint is_ready(self, Array array):
        return array.contiguous

    cdef Array temporary(self, Array array, Stream stream):
        raise NotImplementedError

    cdef int divisor(self, Call call):
        return 0

    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1:
        raise NotImplementedError


# Whether a call writes what another one of the same operation sends.
cdef bint _is_received(list calls, Array send):
    cdef Call call
    for call in calls:
        if call.receive is not None and share_memory(send, call.receive):
            return True
    return False


cdef bint share_memory(Array one, Array other):
    cdef const byte_t* data = <const byte_t*><const void*>one.data
    return overlap(data, one.layout, <const byte_t*><const void*>other.data, other.layout)


# The batch keeps the memory, so that the arrays may be closed from now on; the caller keeps the arrays themselves.
cdef int _add(Batch& batch, Call call, Array send, Array receive, int divide) except -1:
    cdef Transfer transfer
    transfer.verb = call.verb
    transfer.count = call.words
    transfer.type = call.type_word
    transfer.op = call.op_word
    transfer.peer = call.peer
    if send is not None:
        as_array(send, "x")
        transfer.send = send.data
        batch.touches.push_back(send.touch(MemoryAccess.read))
        batch.kept.push_back(send.storage)
        batch.size += send.layout.size() * send.layout.itemsize
    if receive is not None:
        as_array(receive, "out")
        transfer.receive = receive.data
        batch.touches.push_back(receive.touch(MemoryAccess.read_write if call.in_place else MemoryAccess.write))
        batch.kept.push_back(receive.storage)
        if send is None:
            batch.size += receive.layout.size() * receive.layout.itemsize
        if divide:
            batch.division.data = receive.data
            batch.division.wide = receive._dtype.char in "dD"
            batch.division.count = receive.layout.size() * (2 if receive._dtype.kind == "c" else 1)
            batch.division.by = divide
    batch.transfers.push_back(transfer)
    return 0


cdef tuple described(const Waiting& waiting):
    file, line = place_of(waiting.label.site)
    return waiting.found, waiting.number, waiting.label.name.decode(), file, line, waiting.seconds
