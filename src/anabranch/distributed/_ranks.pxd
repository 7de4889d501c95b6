"""The base class of `Communicator`: its state, and the checks of its calls."""

from libc.stdint cimport int64_t

from anabranch._device.device cimport DeviceBase
from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream
from anabranch.distributed._engine cimport Call, Engine, Verb


cdef class Ranks:
    cdef readonly int rank, size, local_rank, local_size
    cdef readonly DeviceBase device
    cdef readonly str backend
    cdef readonly double timeout
    cdef readonly bint closed
    cdef readonly object error      # a CollectiveError once the communicator is broken
    cdef readonly str name
    cdef readonly list members      # ranks in the first communicator
    cdef object control             # a communicator of mpi4py, for what blocks the host
    cdef Group open_group
    cdef Engine engine
    cdef object side
    cdef object failing
    cdef object messages            # numbers, by sender and receiver
    cdef int64_t calls, meetings
    cdef object __weakref__

    # The checks of a call of that name. Each raises with nothing enqueued.
    cdef int check(self, const char* verb, bint grouped) except -1
    cdef int check_array(self, object array, str name, bint written) except -1
    cdef int check_same(self, Array out, Array x) except -1
    # The whole has as many elements as the parts of all ranks; `gathers`: the whole is written, else the part.
    cdef int check_parts(self, object whole, object part, str whole_name, str part_name, bint gathers) except -1
    cdef int rank_of(self, object rank, str name) except -1
    cdef Stream stream_for(self, object stream)

    # Enqueue calls. A reduction's arguments are checked here; `out` is None on other ranks than the root.
    cdef int reduction(self, Verb verb, object x, object op, int root, object out, object stream) except -1
    cdef int transfer(
        self, Verb verb, Array send, Array receive, int64_t count, int op, int peer, object stream) except -1
    # A message to or from another rank, or a part of the open group.
    cdef int message(self, Verb verb, object x, int peer, object stream) except -1
    cdef int enqueue(self, Call call, object stream) except -1

    # Under "check": raises CollectiveError if the ranks' calls differ; tells the other rank of a message.
    cdef int compare(self, int64_t number, dict told, str series) except -1
    cdef int announce_message(self, Call call, bint receives) except -1
    # Blocks until all ranks have come to a call of that name, which blocks the host on each. Raises CollectiveError if
    # they call something else, or do not come in the communicator's time.
    cdef int meet(self, str verb) except -1
    # Closes the engine once its operations have completed.
    cdef int close_engine(self) except -1


cdef class Group:
    cdef Ranks communicator
    cdef list calls
    cdef Stream stream

    cdef int add(self, Call call, Stream stream) except -1
