"""Collectives of one rank in an exploration: copies, and host functions that touch what they would and do nothing.

So the program's order is explored, of which MPI's progress thread knows nothing.
"""

from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream
from anabranch.distributed._engine cimport Call, Verb, name_of

from anabranch._core.errors import Error
from anabranch._memory.copy import copy


cdef int explore_alone(list calls, Stream stream) except -1:
    cdef Call call
    cdef list sent = []  # by this rank to itself, and not received yet
    for call in calls:
        if call.verb == Verb.send:
            sent.append(call.send)
    for call in calls:
        if call.verb == Verb.receive:
            if not sent:
                raise Error("a recv from this rank itself has no send in its group: it would wait for ever")
            _move(call.receive, sent.pop(0), stream)
        elif call.send is not None and call.receive is not None:
            _move(call.receive, call.send, stream)
        elif call.verb != Verb.send:
            _touch(call, stream)
    return 0


cdef int _move(Array receive, Array send, Stream stream) except -1:
    if send.shape != receive.shape:
        send = (<object>send).contiguous(stream).reshape(receive.shape)
    copy(receive, send, stream=stream)
    return 0


# An access in the place of a call that changes nothing with one rank.
cdef int _touch(Call call, Stream stream) except -1:
    cdef Array array = call.array()

    def collective():
        pass

    collective.__name__ = collective.__qualname__ = name_of(call.verb).decode()
    if array is None:
        stream.submit(collective)
    else:
        stream.submit(collective, writes=[array])
    return 0
