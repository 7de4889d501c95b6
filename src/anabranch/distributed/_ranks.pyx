"""The internals of a communicator: its ranks, the checks of its calls, and its failures."""

cimport cython
from libc.stdint cimport int64_t

import copy
import operator
import sys
import threading
from collections import defaultdict

from anabranch._core.core cimport HazardMode, check_fork, forked
from anabranch._memory.array cimport Array
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state
from anabranch.distributed._engine cimport Call, Engine, Verb, make_call, name_of, op_number, share_memory

from anabranch._core.errors import ClosedError, CollectiveError, DeviceError, Error
from anabranch.distributed._progress import current_place
from anabranch.distributed._engine import OPS
from anabranch.distributed._side_channel import AbsentError


cdef class Ranks:
    def __init__(self, Engine engine not None, control, side, str name, *, members, local, device, timeout):
        self.rank = control.rank
        self.size = control.size
        self.local_rank, self.local_size = local
        self.device = device
        self.backend = engine.name
        self.timeout = timeout
        self.name = name
        self.members = members
        self.engine = engine
        self.control = control
        self.side = side
        self.failing = threading.Lock()
        self.messages = defaultdict(int)
        side.register(self)

    # The checks of a call. Each raises with nothing enqueued.

    cdef int check(self, const char* verb, bint grouped) except -1:
        check_fork()
        if self.closed:
            raise ClosedError(f"{self!r} is closed")
        if self.error is not None:
            raise copy.copy(self.error)
        if self.open_group is not None and not grouped:
            raise Error(
                f"{verb.decode()} cannot be part of a group(), which takes send and recv: call it after the block")
        return 0

    cdef int check_array(self, array, str name, bint written) except -1:
        cdef Array checked
        if type(array) is not Array:
            raise TypeError(
                f"{name} is an anabranch Array, not {type(array).__name__}: ab.array copies data, ab.asarray takes "
                "memory of other libraries as it is")
        checked = <Array>array
        if checked._device is not self.device:
            raise DeviceError(f"{name} is on {array.device.alias}, and the communicator is for {self.device.alias}")
        if written and checked._read_only:
            raise ValueError(f"{name} is read-only memory, and would be written")
        return 0

    cdef int check_same(self, Array out, Array x) except -1:
        if out.shape != x.shape or out.dtype != x.dtype:
            raise ValueError(f"out is {out.dtype} of shape {out.shape}, x {x.dtype} of {x.shape}: they must be equal")
        return 0

    cdef int check_parts(self, object whole, object part, str whole_name, str part_name, bint gathers) except -1:
        self.check_array(whole, whole_name, gathers)
        self.check_array(part, part_name, not gathers)
        if whole.dtype != part.dtype or whole.size != part.size * self.size:
            raise ValueError(
                f"{whole_name} is {whole.size} elements of {whole.dtype}: with {part.size} of {part.dtype} in "
                f"{part_name} and {self.size} ranks it must be {part.size * self.size} of {part.dtype}"
            )
        return 0

    cdef int rank_of(self, object rank, str name) except -1:
        if not hasattr(type(rank), "__index__"):
            raise TypeError(f"{name} is a rank, an int, not {type(rank).__name__}")
        number = operator.index(rank)
        if not 0 <= number < self.size:
            raise ValueError(f"{name} is a rank from 0 to {self.size - 1}, not {number}")
        return number

    cdef Stream stream_for(self, stream):
        if stream is None:
            return current_stream_of(current_state(), self.device.ordinal)
        if type(stream) is not Stream:
            raise TypeError(f"a stream is a Stream or None, not {type(stream).__name__}")
        if (<Stream>stream).device is not self.device:
            raise DeviceError(f"{stream!r} is not of {self.device.alias}, the communicator's device")
        return <Stream>stream

    # Calls

    cdef int reduction(self, Verb verb, object x, object op, int root, object out, object stream) except -1:
        cdef Call call
        self.check(name_of(verb), False)
        self.check_array(x, "x", out is x)
        if out is not None and out is not x:
            self.check_array(out, "out", True)
            self.check_same(out, x)
        call = make_call(verb, None if out is x else x, out, out is x, (<Array>x).layout.size(), op_number(op), root)
        return self.enqueue(call, stream)

    cdef int transfer(
            self, Verb verb, Array send, Array receive, int64_t count, int op, int peer, object stream) except -1:
        return self.enqueue(make_call(verb, send, receive, False, count, op, peer), stream)

    cdef int enqueue(self, Call call, object stream) except -1:
        cdef Stream target = self.stream_for(stream)
        self.engine.check(call)
        if self.size > 1 and current_state().mode == <int>HazardMode.check:
            self.compare(self.calls + 1, told_of(call), "")
            self.calls += 1
        if call.count or call.verb == Verb.barrier:
            self.engine.enqueue([call], target, False)
        return 0

    cdef int message(self, Verb verb, object x, int peer, object stream) except -1:
        cdef Call call
        cdef Stream target
        cdef bint receives = verb == Verb.receive
        self.check(b"", True)
        self.check_array(x, "x", receives)
        if peer == self.rank and self.open_group is None:
            raise ValueError(f"rank {peer} would wait for itself: send and recv to oneself in a group()")
        call = make_call(
            verb, None if receives else x, x if receives else None, False, (<Array>x).layout.size(), -1, peer)
        target = self.stream_for(stream)
        self.engine.check(call)
        if self.size > 1 and current_state().mode == <int>HazardMode.check:
            self.announce_message(call, receives)
        if self.open_group is not None:
            self.open_group.add(call, target)
        elif call.count:
            self.engine.enqueue([call], target, False)
        return 0

    cdef int announce_message(self, Call call, bint receives) except -1:
        array, verb = call.array(), name_of(call.verb).decode()
        source, to = (call.peer, self.rank) if receives else (self.rank, call.peer)
        # A message to oneself is counted once on each side, too.
        way = source, to if not receives else to + self.size
        self.messages[way] += 1
        text = f"{verb} of {call.count} {array.dtype} {'from' if receives else 'to'} rank {call.peer}"
        self.side.announce(
            t="message",
            comm=self.name,
            rank=self.rank,
            source=source,
            to=to,
            number=self.messages[way],
            call=told([array.dtype.str, call.count], text),
        )
        return 0

    cdef int meet(self, str verb) except -1:
        self.compare(self.meetings + 1, told([verb], f"{verb}()"), " meetings")
        self.meetings += 1
        return 0

    cdef int compare(self, int64_t number, dict told, str series) except -1:
        file, line = current_place()
        try:
            verdict = self.side.compare(self, number, told, series)
        except AbsentError as absent:
            raise CollectiveError(
                f"{told['text']} at {told['place']}: {absent.who} not come to it in {self.timeout:g} s{absent.instead}",
                operation=told["what"][0],
                ranks=absent.ranks,
                file=file,
                line=line,
            ) from None
        if verdict is not None:
            ranks = tuple(verdict["ranks"])
            raise CollectiveError(verdict["error"], operation=told["what"][0], ranks=ranks, file=file, line=line)
        if self.error is not None:
            raise copy.copy(self.error)
        return 0

    # For the side channel

    def has_channel(self, channel):
        """Return whether the core's channel is this one's."""
        return self.engine.has_channel(channel)

    @property
    def started(self):
        """How many operations of all ranks were started."""
        return self.engine.started

    @property
    def is_waiting(self):
        """Whether an operation is unfinished."""
        return self.engine.is_waiting

    @property
    def oldest(self):
        """The oldest unfinished operation, such as ``recv at main.py:7``; empty where there is none."""
        found, _, name, file, line, _ = self.engine.oldest()
        return f"{name} at {file}:{line}" if found else ""

    def lacks(self, rank, started):
        """Return whether an operation cannot complete, as a rank has ended after so many operations of all ranks."""
        return self.engine.lacks(rank, started)

    def give_up(self, str reason, number):
        """Break the communicator, and tell the other ranks. Any thread.

        `number` is that of the operation that is late, if one is and all ranks take part in it: then it is asked first
        which of them have not come. Else it is 0.
        """
        if number:
            self.side.ask_who_is_late(self, number)
            return
        self.fail(reason, ())
        self.side.announce(t="fail", comm=self.name, reason=f"rank {self.rank}: {reason}", ranks=[self.rank])

    def fail(self, str reason, tuple ranks):
        """Break the communicator: unfinished operations and all later calls fail. Any thread may call this."""
        with self.failing:
            if self.error is not None:
                return
            found, _, name, file, line, age = self.engine.oldest()
            if found:
                where = f"{name} at {file}:{line}, enqueued {age:.1f} s ago,"
                text = f"{where} cannot complete on rank {self.rank}: {reason}"
            else:
                text = f"{self!r} cannot be used any more: {reason}"
            self.error = CollectiveError(text, operation=name, file=file, line=line, ranks=ranks)
            self.engine.fail(self.error)

    cdef int close_engine(self) except -1:
        if self.closed:
            return 0
        self.closed = True
        if forked():  # the connections are the parent's
            return 0
        self.engine.close()
        # Ranks that no longer agree cannot give it back, nor can anyone once MPI has ended.
        if self.error is None and not sys.modules["mpi4py.MPI"].Is_finalized():
            self.control.Free()
        return 0


# The message about a collective.
cdef dict told_of(Call call):
    cdef Array array = call.array()
    verb = name_of(call.verb).decode()
    op = "" if call.op < 0 else OPS[call.op]
    arguments = [repr(op)] if op else []
    if call.verb in (Verb.reduce, Verb.broadcast, Verb.gather, Verb.scatter):
        arguments.append(f"root={call.peer}")
    text = f"{verb}({', '.join(arguments)})" if arguments else verb
    if array is not None:
        text = f"{text} of {call.count} {array.dtype}"
    return told([verb, op, "" if array is None else array.dtype.str, call.count, call.peer], text)


# The message about a call: the values that must be equal on all ranks, and their description.
cdef dict told(list what, str text):
    file, line = current_place()
    return {"what": what, "text": text, "place": f"{file}:{line}"}


@cython.final
cdef class Group:
    """Messages of a communicator that become one operation when the block ends."""

    def __init__(self, Ranks communicator not None):
        self.communicator = communicator
        self.calls = []

    # Adds a message. Raises ValueError for another stream than that of the first.
    cdef int add(self, Call call, Stream stream) except -1:
        if self.stream is not None and stream != self.stream:
            raise ValueError(f"a group is one operation of one stream, {self.stream!r}, not of {stream!r}, too")
        cdef Call earlier
        for earlier in self.calls if call.receive is not None else ():
            if earlier.receive is not None and share_memory(earlier.receive, call.receive):
                raise ValueError("two messages of a group would be received into the same memory, in no order")
        self.stream = stream
        if call.count:
            self.calls.append(call)
        return 0

    def __enter__(self):
        self.communicator.check(b"group", False)
        self.communicator.open_group = self
        self.calls, self.stream = [], None
        return self

    def __exit__(self, kind, value, traceback):
        self.communicator.open_group = None
        if kind is None and self.calls and self.stream is not None:
            self.communicator.check(b"group", True)
            self.communicator.engine.enqueue(self.calls, self.stream, True)
