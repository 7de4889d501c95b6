"""The core's channels: collectives of one communicator, as operations of streams."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    Activation, ByteRange, CStream, Failure, HazardMode, HostWork, OperationKind, Pending, Point, Ref, Site, Storage, Touch,
    make_failure, now_nanoseconds, tracing)
from anabranch._core.graph cimport add_host, tell_origin
from anabranch._core.tracing cimport show
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, begin, begin_untouched, commit
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.slice cimport whole_of
from anabranch._stream.host_node cimport ReservedWork
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch._task.site cimport current_site, place_of

from anabranch._core.errors import CaptureError

cdef extern from "anabranch/collective.hpp" namespace "anabranch" nogil:
    cdef enum class Verb "anabranch::Verb":
        barrier
    cdef cppclass Transfer:
        Transfer()
        Verb verb
        const void* send
        void* receive
        int64_t count
        uintptr_t type
        uintptr_t op
        int peer
    cdef cppclass Division:
        Division()
        void* data
        int64_t count
        cbool wide
        int by
    cdef cppclass Label:
        Label()
        string name
        Site site
        cbool common
    cdef cppclass CTransport "anabranch::Transport":
        pass
    cdef cppclass Collective(Pending):
        pass
    cdef cppclass Waiting:
        cbool found
        uint64_t number
        Label label
        double seconds
    cdef cppclass CChannel "anabranch::Channel":
        uint64_t enqueue(const Ref[Collective]&) except +
        void withdraw(const Ref[Collective]&)
        void fail(const Ref[Failure]&)
        Waiting oldest() except +
        void close()
        uint64_t started()
        cbool idle() except +
    cdef cppclass CCollectiveWork "anabranch::CollectiveWork":
        void reserve() except +
        void withdraw()
    cdef cppclass Trouble:
        Ref[CChannel] channel
        Waiting collective
        cbool late
        string text
    cdef cppclass Progress:
        @staticmethod
        Progress& instance()
        int descriptor()
        vector[Trouble] take_trouble() except +
        size_t in_flight()
        cbool stop()

cdef extern from "anabranch/mpi.hpp" namespace "anabranch" nogil:
    cdef cppclass MpiFunctions:
        MpiFunctions()
        void** start
        void* test
        void* error_string
        void* comm_free
        void* in_place
    Ref[CTransport] make_mpi_transport(const MpiFunctions&) except +

cdef extern from *:
    """
    static anabranch::Ref<anabranch::Channel> make_channel(
        const anabranch::Ref<anabranch::Transport>& transport, uintptr_t communicator, int64_t timeout) {
      return anabranch::make_ref<anabranch::Channel>(transport, communicator, std::chrono::nanoseconds(timeout));
    }
    static anabranch::Ref<anabranch::Collective> make_collective(
        const anabranch::Ref<anabranch::Channel>& channel, std::vector<anabranch::Transfer>& transfers,
        std::vector<anabranch::Ref<anabranch::Storage>>& kept, const anabranch::Division& division,
        const anabranch::Label& label) {
      return anabranch::make_ref<anabranch::Collective>(
          channel, std::move(transfers), std::move(kept), division, label);
    }
    static anabranch::Ref<anabranch::CollectiveWork> make_work(
        const anabranch::Ref<anabranch::Channel>& channel, std::vector<anabranch::Transfer>& transfers,
        std::vector<anabranch::Ref<anabranch::Storage>>& kept, const anabranch::Division& division,
        const anabranch::Label& label) {
      return anabranch::make_ref<anabranch::CollectiveWork>(
          channel, std::move(transfers), std::move(kept), division, label);
    }
    static anabranch::Ref<anabranch::HostWork> as_host_work(const anabranch::Ref<anabranch::CollectiveWork>& work) {
      return work;
    }
    static anabranch::Ref<anabranch::Pending> as_operation(const anabranch::Ref<anabranch::Collective>& collective) {
      return collective;
    }
    """
    Ref[CChannel] make_channel(const Ref[CTransport]&, uintptr_t, int64_t) except +
    Ref[Collective] make_collective(
        const Ref[CChannel]&, vector[Transfer]&, vector[Ref[Storage]]&, const Division&, const Label&) except +
    Ref[CCollectiveWork] make_work(
        const Ref[CChannel]&, vector[Transfer]&, vector[Ref[Storage]]&, const Division&, const Label&) except +
    Ref[HostWork] as_host_work(const Ref[CCollectiveWork]&)
    Ref[Pending] as_operation(const Ref[Collective]&)

# In the order of the core's `Verb`.
VERBS = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send",
    "recv", "barrier")


def is_packed(Array array not None):
    """Return whether the elements lie next to each other, in row-major order."""
    return array.contiguous


def overlap(Array one not None, Array other not None):
    """Return whether two arrays share bytes, as far as their extents tell."""
    cdef ByteRange first = one.bytes()
    cdef ByteRange second = other.bytes()
    cdef uintptr_t base = <uintptr_t>one.storage.get().pointer()
    cdef uintptr_t other_base = <uintptr_t>other.storage.get().pointer()
    return base + first.low < other_base + second.high and other_base + second.low < base + first.high


def now():
    """Return the time of traces, in nanoseconds of this machine's clock."""
    return now_nanoseconds()


def current_place():
    """Return file and line of the program that is running."""
    return place_of(current_site())


def is_checking():
    """Return whether the task's hazard mode is "check"."""
    return current_state().mode == <int>HazardMode.check


def descriptor():
    """Return a file descriptor that is readable while there is trouble to be taken."""
    return Progress.instance().descriptor()


def take_trouble():
    """Return what went wrong, each as a channel, `Channel.oldest` of the collective, whether it is late, and a text."""
    cdef vector[Trouble] found = Progress.instance().take_trouble()
    cdef size_t i
    cdef Channel channel
    told = []
    for i in range(found.size()):
        channel = Channel.__new__(Channel)
        channel.core = found[i].channel
        told.append((
            channel, *_described(found[i].collective), found[i].late, found[i].text.decode(errors="replace")))
    return told


def in_flight():
    """Return how many collectives of the process were started and are not over."""
    return Progress.instance().in_flight()


def stop():
    """End the progress thread. Returns whether nothing was in flight."""
    cdef cbool idle
    with nogil:
        idle = Progress.instance().stop()
    return idle


cdef tuple _described(const Waiting& waiting):
    file, line = place_of(waiting.label.site)
    return waiting.found, waiting.number, waiting.label.name.decode(), file, line, waiting.seconds


@cython.final
cdef class Transport:
    """Functions of the MPI library, by address: those that start collectives in the order of `VERBS`."""

    cdef Ref[CTransport] core

    def __init__(self, start, test, error_string, comm_free, in_place):
        cdef MpiFunctions functions
        cdef int verb
        for verb, address in enumerate(start):
            functions.start[verb] = <void*><uintptr_t>address
        functions.test = <void*><uintptr_t>test
        functions.error_string = <void*><uintptr_t>error_string
        functions.comm_free = <void*><uintptr_t>comm_free
        functions.in_place = <void*><uintptr_t>in_place
        self.core = make_mpi_transport(functions)


@cython.final
cdef class CapturedCollective(ReservedWork):
    """A collective of a graph."""

    cdef Ref[CCollectiveWork] work

    cdef int reserve(self) except -1:
        self.work.get().reserve()
        return 0

    cdef int withdraw(self) except -1:
        self.work.get().withdraw()
        return 0


@cython.final
cdef class Channel:
    """A communicator of a transport. Two objects of the same one are equal."""

    cdef Ref[CChannel] core
    cdef str title

    def __init__(self, Transport transport not None, communicator, str title, double timeout):
        self.title = title
        self.core = make_channel(transport.core, communicator, <int64_t>(timeout * 1e9))

    def submit(self, Stream stream not None, str name not None, list transfers not None, int divide=0):
        """Enqueue transfers as one operation of a stream.

        Parameters
        ----------
        stream : Stream
        name : str
            What traces and messages call it.
        transfers : list of tuple
            The verb, an index into `VERBS`; arrays to send and to receive, contiguous or None; whether what is
            received was read before; count and handle of the type; handle of the operation; root or peer.
        divide : int
            What the received floating-point numbers are divided by; 0 for none.
        """
        cdef TaskState state = current_state()
        cdef vector[Transfer] calls
        cdef vector[Touch] touches
        cdef vector[Ref[Storage]] kept
        cdef Transfer call
        cdef Division division
        cdef Array array
        cdef size_t size = 0
        arrays = []     # private views, which stay open
        for verb, send, receive, in_place, count, kind, op, peer in transfers:
            call = Transfer()
            call.verb = <Verb><int>verb
            call.count, call.type, call.op, call.peer = count, kind, op, peer
            if send is not None:
                array = whole_of(as_array(send, "x"))
                arrays.append(array)
                call.send = array.data
                touches.push_back(array.touch(MemoryAccess.read))
                kept.push_back(array.storage)
                size += array.layout.size() * array.layout.itemsize
            if receive is not None:
                array = whole_of(as_array(receive, "out"))
                arrays.append(array)
                call.receive = array.data
                touches.push_back(array.touch(MemoryAccess.read_write if in_place else MemoryAccess.write))
                kept.push_back(array.storage)
                if send is None:
                    size += array.layout.size() * array.layout.itemsize
                if divide:
                    division.data = array.data
                    division.wide = array._dtype.char in "dD"
                    division.count = array.layout.size() * (2 if array._dtype.kind == "c" else 1)
                    division.by = divide
            calls.push_back(call)
        if stream.get().capture() != NULL:
            self.record(state, stream.get(), name, touches, make_work(
                self.core, calls, kept, division, _label(name)))
            return
        self.enqueue(state, stream.get(), name, touches, make_collective(
            self.core, calls, kept, division, _label(name)), size)

    cdef int record(
            self, TaskState state, CStream* stream, str name, const vector[Touch]& touches,
            const Ref[CCollectiveWork]& work) except -1:
        cdef Submission submission
        cdef CapturedCollective captured = CapturedCollective.__new__(CapturedCollective)
        cdef Point point
        if stream.capture().exclusive():
            raise CaptureError("a graphed function cannot make collectives: capture them with anabranch.capture")
        captured.work = work
        begin(&submission, state, stream, touches.data(), touches.size())
        point = add_host(deref(stream), name.encode(), as_host_work(work))
        tell_origin(deref(stream), point, captured)
        return commit(&submission, state, point)

    cdef int enqueue(
            self, TaskState state, CStream* stream, str name, const vector[Touch]& touches,
            const Ref[Collective]& collective, size_t size) except -1:
        cdef Submission submission
        cdef Site site
        cdef uint64_t number
        cdef Point point
        if touches.empty():
            begin_untouched(&submission, state, stream)
        else:
            begin(&submission, state, stream, touches.data(), touches.size())
        number = self.core.get().enqueue(collective)
        try:
            point = stream.backend().suspend(deref(stream), as_operation(collective))
        except BaseException:
            self.core.get().withdraw(collective)
            raise
        if tracing():
            told = f"{name} {self.title}#{number}" if number != 0 else name
            show(stream, point, OperationKind.collective, told, size)
        if state.mode == <int>HazardMode.check:
            site = current_site()
        submission.commit(point, site)
        return 0

    def fail(self, error):
        """Fail what was enqueued and is not over, and everything that is enqueued from now on."""
        cdef Ref[Failure] failure = make_failure(str(error).encode(errors="backslashreplace"), error)
        with nogil:
            self.core.get().fail(failure)

    def oldest(self):
        """Return whether a collective is not over; of the oldest one number, name, file, line and age in seconds.

        The number counts those that all ranks take part in, from 1; 0 is a message.
        """
        return _described(self.core.get().oldest())

    def close(self):
        """Give the communicator back once everything enqueued is over."""
        with nogil:
            self.core.get().close()

    @property
    def started(self):
        """How many collectives were started that all ranks take part in."""
        return self.core.get().started()

    @property
    def idle(self):
        """Whether everything enqueued is over."""
        return self.core.get().idle()

    def __eq__(self, other):
        return isinstance(other, Channel) and (<Channel>other).core.get() == self.core.get()

    def __hash__(self):
        return <uintptr_t>self.core.get()


def submit_external(Stream stream not None, str name not None, list arrays not None, call):
    """Have another library enqueue an operation of a GPU's stream, in order with the accesses that it makes.

    Parameters
    ----------
    stream : Stream
    name : str
        What traces call it.
    arrays : list of tuple
        Arrays, each with whether it is read and whether it is written.
    call : callable
        Enqueues the operation, given the stream's handle, with the device's context current. If it raises, nothing
        counts as accessed.
    """
    cdef TaskState state = current_state()
    cdef Submission submission
    cdef vector[Touch] touches
    cdef Array view
    cdef Point point
    cdef Site site
    cdef size_t size = 0
    views = []      # private, so that no code that runs meanwhile closes them
    for array, read, written in arrays:
        view = whole_of(as_array(array, "x"))
        views.append(view)
        touches.push_back(view.touch(
            MemoryAccess.read if not written else MemoryAccess.read_write if read else MemoryAccess.write))
        size += view.layout.size() * view.layout.itemsize
    handle = stream.__cuda_stream__()[1]
    cdef CStream* queue = stream.get()
    if touches.empty():
        begin_untouched(&submission, state, queue)
    else:
        begin(&submission, state, queue, touches.data(), touches.size())
    with_context(stream.device, call, handle)
    point = stream.now(queue)
    if tracing():
        show(queue, point, OperationKind.collective, name, size)
    if state.mode == <int>HazardMode.check:
        site = current_site()
    submission.commit(point, site)


def with_context(DeviceBase device not None, call, *arguments):
    """Call a function with the context of a GPU current on this thread; return its result."""
    cdef unique_ptr[Activation] _active = device.backend.activate()
    return call(*arguments)


cdef Label _label(str name) except *:
    cdef Label label
    label.name = name.encode()
    label.site = current_site()
    label.common = name not in ("send", "recv", "group")
    return label
