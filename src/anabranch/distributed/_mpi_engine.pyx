"""Collectives over MPI, of arrays in host memory. Other arrays go through temporary ones there."""

cimport cython
from libc.stdint cimport int64_t

from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream
from anabranch.distributed._channel cimport Channel
from anabranch.distributed._engine cimport Batch, Call, Engine, Label

from anabranch._memory.factories import empty
from anabranch.distributed._engine import OPS
from anabranch.distributed._mpi import LARGEST_COUNT


cdef int _average = OPS.index("avg")


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
    cdef Channel channel
    cdef int64_t largest

    name = "mpi"

    def __init__(self, mpi, communicator, str title, double timeout):
        self.mpi = mpi
        self.size = communicator.size
        self.channel = Channel(mpi.transport, mpi.module._handleof(communicator), title, timeout)
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

    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1:
        return self.channel.submit(stream, label, batch)

    def has_channel(self, channel):
        """Return whether the channel is this one's."""
        return self.channel == channel

    @property
    def started(self):
        """How many operations of all ranks were started."""
        return self.channel.started

    @property
    def is_waiting(self):
        """Whether an operation is not over."""
        return not self.channel.idle

    def oldest(self):
        """Return what is known of the oldest operation that is not over."""
        return self.channel.oldest()

    def fail(self, error):
        """Fail what is not over, and all that follows."""
        self.channel.fail(error)

    def close(self):
        """Give the communicator back once everything is over."""
        self.channel.close()
