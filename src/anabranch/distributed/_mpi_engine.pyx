"""Collectives over MPI, of arrays in host memory. Other arrays go through temporary ones there."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t, uintptr_t

from anabranch._core.core cimport (
    CStream, Failure, HostWork, OperationKind, HostOperation, Point, Ref, make_failure, nanoseconds, tracing)
from anabranch._core.explore cimport exploring
from anabranch._core.graph cimport add_host, tell_origin
from anabranch._core.tracing cimport show
from anabranch._hazards.ordering cimport Submission, begin, begin_untouched, commit
from anabranch._memory.array cimport Array
from anabranch._stream.host_node cimport ReservedWork
from anabranch._stream.host_threads cimport ensure_host_thread
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch.distributed._alone cimport explore_alone
from anabranch.distributed._engine cimport Batch, Call, Engine, Label, described
from anabranch.distributed._progress cimport Channel, Collective, CollectiveWork, CTransport, Transport

from anabranch._core.errors import CaptureError, ClosedError, Error
from anabranch._memory.factories import empty
from anabranch.distributed._engine import OPS
from anabranch.distributed._mpi import LARGEST_COUNT

cdef extern from *:
    """
    static anabranch::Ref<anabranch::Channel> make_channel(
        const anabranch::Ref<anabranch::Transport>& transport, uintptr_t communicator, int64_t timeout) {
      return anabranch::make_ref<anabranch::Channel>(transport, communicator, std::chrono::nanoseconds(timeout));
    }
    // A Collective or a CollectiveWork.
    template <class T>
    static anabranch::Ref<T> made_of(
        const anabranch::Ref<anabranch::Channel>& channel, Batch& batch, const anabranch::Label& label) {
      return anabranch::make_ref<T>(
          channel, std::move(batch.transfers), std::move(batch.kept), batch.division, label);
    }
    template <class Base, class T>
    static anabranch::Ref<Base> as_base(const anabranch::Ref<T>& derived) { return derived; }
    """
    Ref[Channel] make_channel(const Ref[CTransport]&, uintptr_t, int64_t) except +
    Ref[Collective] make_collective "made_of<anabranch::Collective>"(
        const Ref[Channel]&, Batch&, const Label&) except +
    Ref[CollectiveWork] make_work "made_of<anabranch::CollectiveWork>"(
        const Ref[Channel]&, Batch&, const Label&) except +
    Ref[HostWork] as_host_work "as_base<anabranch::HostWork>"(const Ref[CollectiveWork]&)
    Ref[HostOperation] as_pending "as_base<anabranch::HostOperation>"(const Ref[Collective]&)

# A rank that has ended had sent its message, which may be on its way.
cdef int64_t _message_grace_ns = 5 * 10**9

cdef int _average = OPS.index("avg")


@cython.final
cdef class CapturedCollective(ReservedWork):
    """A collective of a graph."""

    cdef Ref[CollectiveWork] work
    cdef MpiEngine engine

    cdef int reserve(self) except -1:
        if self.engine.closed:
            raise ClosedError("the graph has a collective of a communicator that is closed")
        self.work.get().reserve()
        return 0

    cdef int withdraw(self) except -1:
        self.work.get().withdraw()
        return 0


@cython.final
cdef class MpiEngine(Engine):
    """One communicator of MPI.

    Parameters
    ----------
    mpi : Mpi
    communicator : mpi4py.MPI.Comm
        Used by nobody else; given back by `close`.
    title : str
        What traces call it.
    timeout : float
        Seconds from the start of a collective.
    """

    cdef object mpi
    cdef int size
    cdef str title
    cdef Ref[Channel] channel
    cdef int64_t largest
    cdef bint closed

    name = "mpi"

    def __init__(self, mpi, communicator, str title, double timeout):
        cdef Transport transport = mpi.transport
        self.mpi = mpi
        self.size = communicator.size
        self.title = title
        self.channel = make_channel(transport.core, mpi.module._handleof(communicator), <int64_t>(timeout * 1e9))
        self.largest = 2**63 - 1 if mpi.large_counts else LARGEST_COUNT
        self.byte = mpi.byte

    cdef int check(self, Call call) except -1:
        Engine.check(self, call)
        if call.words > self.largest:
            raise ValueError(f"this MPI counts up to {LARGEST_COUNT}, not {call.words:,}: split the array")
        return 0

    cdef tuple reduction(self, object dtype, str op):
        kind, operation = self.mpi.reduction(dtype, op)
        return kind, 1, operation

    cdef bint is_ready(self, Array array):
        return array.contiguous and array._device.kind == "cpu"

    cdef Array temporary(self, Array array, Stream stream):
        if array._device.kind == "cpu":
            return empty(array.shape, array.dtype, device=array._device, stream=stream)
        return empty(array.shape, array.dtype, device="cpu", pinned=True)

    cdef int divisor(self, Call call):
        return self.size if call.op == _average else 0

    cdef int enqueue(self, list calls, Stream stream, bint grouped) except -1:
        if not exploring():
            return Engine.enqueue(self, calls, stream, grouped)
        if self.size > 1:
            raise Error(
                "a collective of several ranks cannot be explored, because the others do not repeat theirs: explore "
                "the program with one rank")
        return explore_alone(calls, stream)

    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1:
        cdef TaskState state = current_state()
        cdef CStream* queue = stream.get()
        if queue.capture() != NULL:
            return self.record(state, queue, label, batch)
        cdef Submission submission
        cdef Ref[Collective] collective = make_collective(self.channel, batch, label)
        cdef uint64_t number
        cdef Point point
        if batch.touches.size() == 0:
            begin_untouched(&submission, state, queue)
        else:
            begin(&submission, state, queue, batch.touches.data(), batch.touches.size())
        number = self.channel.get().enqueue(collective)
        try:
            point = queue.backend().suspend(deref(queue), as_pending(collective))
        except BaseException:
            self.channel.get().withdraw(collective)
            raise
        if tracing():
            name = label.name.decode()
            told = f"{name} {self.title}#{number}" if number != 0 else name
            show(queue, point, OperationKind.collective, told, batch.size)
        return commit(&submission, state, point)

    cdef int record(self, TaskState state, CStream* queue, const Label& label, Batch& batch) except -1:
        cdef Submission submission
        cdef CapturedCollective captured = CapturedCollective.__new__(CapturedCollective)
        cdef Point point
        if queue.capture().exclusive():
            raise CaptureError("a graphed function cannot make collectives: capture them with anabranch.capture")
        # The progress thread drops the last reference to a replay, which is released on a host thread.
        ensure_host_thread()
        captured.engine = self
        captured.work = make_work(self.channel, batch, label)
        begin(&submission, state, queue, batch.touches.data(), batch.touches.size())
        point = add_host(deref(queue), label.name, as_host_work(captured.work))
        tell_origin(deref(queue), point, captured)
        return commit(&submission, state, point)

    def has_channel(self, channel):
        """Return whether a channel of `take_failures` is this one's."""
        return <uintptr_t>self.channel.get() == channel

    @property
    def started(self):
        """How many operations of all ranks were started."""
        return self.channel.get().started()

    @property
    def is_waiting(self):
        """Whether an operation is not over."""
        return not self.channel.get().idle()

    def lacks(self, int rank, uint64_t started):
        """Return whether an operation cannot complete, as a rank has ended after so many operations of all ranks."""
        return self.channel.get().lacks(rank, started, nanoseconds(_message_grace_ns))

    def oldest(self):
        """Return whether an operation is not over; of the oldest one number, name, file, line and age in seconds.

        The number counts those that all ranks take part in, from 1; 0 is a message.
        """
        return described(self.channel.get().oldest())

    def fail(self, error):
        """Fail what is not over, and all that follows."""
        cdef Ref[Failure] failure = make_failure(str(error).encode(errors="backslashreplace"), error)
        with nogil:
            self.channel.get().fail(failure)

    def close(self):
        """Give the communicator back once everything is over."""
        self.closed = True
        with nogil:
            self.channel.get().close()
