"""The internals of a communicator: its ranks, the checks of its calls, and its failures."""

cimport cython
from libc.stdint cimport int64_t

import copy
import operator
import threading
from collections import defaultdict

from anabranch._core.core cimport HazardMode
from anabranch._device.device cimport DeviceBase
from anabranch._memory.array cimport Array
from anabranch._stream.current cimport current_stream_of
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport current_state
from anabranch.distributed._engine cimport Call, Engine, make_call

from anabranch._core.errors import ClosedError, CollectiveError, DeviceError, Error
from anabranch.distributed._channel import current_place
from anabranch.distributed._engine import VERBS

OPS = ("sum", "prod", "min", "max", "avg")

cdef dict _numbers = {verb: number for number, verb in enumerate(VERBS)}


cdef class Ranks:
    """The private base class of `Communicator`."""

    cdef readonly int rank, size, local_rank, local_size
    cdef readonly DeviceBase device
    cdef readonly str backend
    cdef readonly double timeout
    cdef public bint closed
    cdef readonly object error
    cdef readonly str name
    cdef readonly list members
    cdef readonly object _control
    cdef public int _splits
    cdef public Group _group
    cdef Engine engine
    cdef object side
    cdef object failing
    cdef object messages        # numbers, by sender and receiver
    cdef int64_t calls
    cdef object __weakref__

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
        self._control = control
        self.side = side
        self.failing = threading.Lock()
        self.messages = defaultdict(int)
        side.register(self)

    # The checks of a call. Each raises with nothing enqueued.

    def _check(self, str verb, bint grouped=False):
        self.check(verb, grouped)

    cdef int check(self, str verb, bint grouped) except -1:
        if self.closed:
            raise ClosedError(f"{self!r} is closed")
        if self.error is not None:
            raise copy.copy(self.error)
        if self._group is not None and not grouped:
            raise Error(f"{verb} cannot be part of a group(), which takes send and recv: call it after the block")
        return 0

    def _array(self, array, str name, bint written):
        self.check_array(array, name, written)

    cdef int check_array(self, array, str name, bint written) except -1:
        cdef Array checked
        if type(array) is not Array:
            raise TypeError(f"{name} is an anabranch Array, not {type(array).__name__}; ab.asarray makes one")
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

    def _parts(self, whole, part, str whole_name, str part_name, written):
        self.check_array(whole, whole_name, whole is written)
        self.check_array(part, part_name, part is written)
        if whole.dtype != part.dtype or whole.size != part.size * self.size:
            raise ValueError(
                f"{whole_name} is {whole.size} elements of {whole.dtype}: with {part.size} of {part.dtype} in "
                f"{part_name} and {self.size} ranks it must be {part.size * self.size} of {part.dtype}"
            )

    def _rank(self, rank, str name):
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

    def _reduction(self, str verb, x, str op, int root, out, stream):
        """Enqueue `all_reduce`, or `reduce`, whose `out` is None on other ranks than the root."""
        cdef Call call
        self.check(verb, False)
        self.check_array(x, "x", out is x)
        if out is not None and out is not x:
            self.check_array(out, "out", True)
            self.check_same(out, x)
        if op not in OPS:
            raise ValueError(f"op is one of {', '.join(map(repr, OPS))}, not {op!r}")
        call = make_call(
            _numbers[verb], None if out is x else x, out, out is x, (<Array>x).layout.size(), op, root)
        self.enqueue(call, stream, None)

    def _transfer(self, str verb, send, receive, count, str op, int peer, stream, str text=None):
        """Enqueue a collective whose arguments were checked. `text`: what messages call it, if not the verb."""
        self.enqueue(make_call(_numbers[verb], send, receive, False, count, op, peer), stream, text or verb)

    cdef int enqueue(self, Call call, stream, str text) except -1:
        cdef Stream target = self.stream_for(stream)
        cdef str verb = VERBS[call.verb]
        self.engine.check(call)
        if self.size > 1 and current_state().mode == <int>HazardMode.check:
            array = call.array()
            if text is None:
                text = f"{verb}({call.op!r})" if verb == "all_reduce" else f"{verb}({call.op!r}, root={call.peer})"
            if array is not None:
                text = f"{text} of {call.count} {array.dtype}"
            op = call.op if call.reduces() else ""
            dtype = "" if array is None else array.dtype.str
            self.compare(told([verb, op, dtype, call.count, call.peer], text))
        if call.count or verb == "barrier":
            self.engine.enqueue([call], target, verb)
        return 0

    def _message(self, str verb, x, int peer, stream):
        """Enqueue a message to or from another rank, or put it into the open group."""
        cdef Call call
        cdef Stream target
        cdef bint receives = verb == "recv"
        self.check(verb, True)
        self.check_array(x, "x", receives)
        if peer == self.rank and self._group is None:
            raise ValueError(f"rank {peer} would wait for itself: send and recv to oneself in a group()")
        call = make_call(_numbers[verb], None if receives else x, x if receives else None, False, x.size, "", peer)
        target = self.stream_for(stream)
        self.engine.check(call)
        if self.size > 1 and current_state().mode == <int>HazardMode.check:
            self.announce_message(call, receives)
        if self._group is not None:
            self._group.add(call, target)
        elif call.count:
            self.engine.enqueue([call], target, verb)

    cdef int announce_message(self, Call call, bint receives) except -1:
        array, verb = call.array(), VERBS[call.verb]
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

    # Raises CollectiveError if the ranks' calls differ.
    cdef int compare(self, dict told) except -1:
        self.calls += 1
        file, line = current_place()
        try:
            verdict = self.side.compare(self, self.calls, told)
        except TimeoutError:
            raise CollectiveError(
                f"{told['text']} at {told['place']}: other ranks have made no call to compare it with in "
                f"{self.timeout:g} s",
                operation=told["what"][0],
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

    def give_up(self, str reason):
        """Break the communicator, and tell the other ranks. Any thread."""
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

    def _close(self):
        """Close the engine once its operations have completed."""
        self.engine.close()


def told(list what, str text):
    """Return the message about a call: the values that must be equal on all ranks, and their description."""
    file, line = current_place()
    return {"what": what, "text": text, "place": f"{file}:{line}"}


@cython.final
cdef class Group:
    """Messages of a communicator that become one operation when the block ends."""

    cdef Ranks communicator
    cdef list calls
    cdef Stream stream

    def __init__(self, Ranks communicator not None):
        self.communicator = communicator
        self.calls = []

    # Adds a message. Raises ValueError for another stream than that of the first.
    cdef int add(self, Call call, Stream stream) except -1:
        if self.stream is not None and stream != self.stream:
            raise ValueError(f"a group is one operation of one stream, {self.stream!r}, not of {stream!r}, too")
        self.stream = stream
        if call.count:
            self.calls.append(call)
        return 0

    def __enter__(self):
        self.communicator.check("group", False)
        self.communicator._group = self
        return self

    def __exit__(self, kind, value, traceback):
        self.communicator._group = None
        if kind is None and self.calls and self.stream is not None:
            self.communicator.engine.enqueue(self.calls, self.stream, "group")
