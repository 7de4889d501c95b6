"""The core's channels: collectives of one communicator, as operations of streams."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CStream, Failure, HostWork, OperationKind, Pending, Point, Ref, Storage, make_failure, now_nanoseconds, tracing)
from anabranch._core.graph cimport add_host, tell_origin
from anabranch._core.tracing cimport show
from anabranch._hazards.ordering cimport Submission, begin, begin_untouched, commit
from anabranch._stream.host_node cimport ReservedWork
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch._task.site cimport current_site, place_of
from anabranch.distributed._engine cimport Batch, Division, Label, Touches, Transfer, described

from anabranch._core.errors import CaptureError

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


def now():
    """Return the time of traces, in nanoseconds of this machine's clock."""
    return now_nanoseconds()


def current_place():
    """Return file and line of the program that is running."""
    return place_of(current_site())


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
            channel, *described(found[i].collective), found[i].late, found[i].text.decode(errors="replace")))
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

    def __init__(self, Transport transport not None, communicator, str title, double timeout):
        self.title = title
        self.core = make_channel(transport.core, communicator, <int64_t>(timeout * 1e9))

    # Enqueues the transfers as one operation of a stream.
    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1:
        cdef TaskState state = current_state()
        if stream.get().capture() != NULL:
            return self.record(state, stream.get(), label.name, batch.touches, make_work(
                self.core, batch.transfers, batch.kept, batch.division, label))
        return self.enqueue(state, stream.get(), label.name, batch.touches, make_collective(
            self.core, batch.transfers, batch.kept, batch.division, label), batch.size)

    cdef int record(
            self, TaskState state, CStream* stream, const char* name, Touches& touches,
            const Ref[CCollectiveWork]& work) except -1:
        cdef Submission submission
        cdef CapturedCollective captured = CapturedCollective.__new__(CapturedCollective)
        cdef Point point
        if stream.capture().exclusive():
            raise CaptureError("a graphed function cannot make collectives: capture them with anabranch.capture")
        captured.work = work
        begin(&submission, state, stream, touches.data(), touches.size())
        point = add_host(deref(stream), name, as_host_work(work))
        tell_origin(deref(stream), point, captured)
        return commit(&submission, state, point)

    cdef int enqueue(
            self, TaskState state, CStream* stream, const char* name, Touches& touches,
            const Ref[Collective]& collective, size_t size) except -1:
        cdef Submission submission
        cdef uint64_t number
        cdef Point point
        if touches.size() == 0:
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
            told = f"{name.decode()} {self.title}#{number}" if number != 0 else name.decode()
            show(stream, point, OperationKind.collective, told, size)
        return commit(&submission, state, point)

    def fail(self, error):
        """Fail what was enqueued and is not over, and everything that is enqueued from now on."""
        cdef Ref[Failure] failure = make_failure(str(error).encode(errors="backslashreplace"), error)
        with nogil:
            self.core.get().fail(failure)

    def oldest(self):
        """Return whether a collective is not over; of the oldest one number, name, file, line and age in seconds.

        The number counts those that all ranks take part in, from 1; 0 is a message.
        """
        return described(self.core.get().oldest())

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
