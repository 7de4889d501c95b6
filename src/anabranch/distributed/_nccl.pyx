"""Collectives over NCCL between GPUs. Each is an operation that NCCL puts into the stream.

nccl4py makes the communicators; the calls go to the functions of the library that it has loaded.
"""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t, uintptr_t
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import ctypes
import importlib.util
import os
import threading

from anabranch._core.core cimport (
    Activation, CStream, OperationKind, Point, Ref, tracing, translate)
from anabranch._core.tracing cimport show
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, begin, begin_untouched, commit
from anabranch._memory.array cimport Array
from anabranch._stream.current cimport stream_of_record
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch.distributed._engine cimport Batch, Engine, Label, Transfer, Waiting, described

from anabranch._core.errors import CaptureError, Error
from anabranch._memory.factories import empty, zeros
from anabranch._stream.gate import fail

cdef extern from "anabranch/collective/nccl.hpp" namespace "anabranch" nogil:
    cdef cppclass NcclFunctions:
        NcclFunctions()
        void* all_reduce
        void* reduce
        void* broadcast
        void* all_gather
        void* reduce_scatter
        void* send
        void* receive
        void* group_start
        void* group_end
        void* error_string
    cdef cppclass NcclChannel:
        Point enqueue(CStream&, vector[Transfer], const Label&) except +translate
        uint64_t next_number() const
        uint64_t started() const
        Waiting oldest() except +
        string failure() except +
        vector[Ref[CStream]] abandon() except +
        void finish()

cdef extern from *:
    """
    static anabranch::Ref<anabranch::NcclChannel> make_nccl_channel(
        const anabranch::NcclFunctions& functions, uintptr_t communicator, int size) {
      return anabranch::make_ref<anabranch::NcclChannel>(functions, communicator, size);
    }
    """
    Ref[NcclChannel] make_nccl_channel(const NcclFunctions&, uintptr_t communicator, int size) except +

# NCCL's numbers of types and operations, part of its binary interface.
cdef dict _types = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8}
cdef dict _ops = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
# Of 0 and 1: NumPy's booleans add by "or" and multiply by "and".
cdef dict _boolean_ops = {"sum": 2, "prod": 3, "max": 2, "min": 3}
cdef int _byte = 1

# Seconds between two polls of the collectives in flight.
cdef double _INTERVAL = 0.1
_SUCCESS, _IN_PROGRESS = 0, 7


def is_installed():
    """Return whether nccl4py is installed."""
    try:
        return importlib.util.find_spec("nccl") is not None
    except ValueError:
        return False  # a module without a specification


def require():
    """Raise ModuleNotFoundError where nccl4py is not installed."""
    if not is_installed():
        raise ModuleNotFoundError("collectives between GPUs need nccl4py: pip install anabranch[nccl]", name="nccl")


@cython.final
cdef class NcclEngine(Engine):
    """One communicator of NCCL.

    Parameters
    ----------
    control : mpi4py.MPI.Comm
        A communicator of the same ranks, over which they share NCCL's identifier.
    device : Device
    title : str
        What traces call it.
    timeout : float
        Seconds that a collective may take after it was enqueued.
    report : callable
        Called on a separate thread when the communicator must be broken: with a reason, and the number of the operation
        that is late, or 0.
    """

    cdef Ref[NcclChannel] channel
    cdef DeviceBase device
    cdef object comm            # nccl4py's
    cdef str title
    cdef double timeout
    cdef object report
    cdef Array token
    cdef object watcher
    cdef object woken, stopped
    cdef bint resting           # the watcher waits to be woken
    cdef bint ended

    name = "nccl"

    def __init__(self, control, DeviceBase device not None, str title, double timeout, report):
        require()
        import nccl.core

        self.device = device
        self.title = title
        self.timeout = timeout
        self.report = report
        self.byte = _byte
        identifier = bytes(nccl.core.get_unique_id()) if control.rank == 0 else None
        identifier = nccl.core.UniqueId.from_bytes(control.bcast(identifier, 0))
        self.comm = self.within(nccl.core.Communicator.init, (control.size, control.rank, identifier))
        self.channel = make_nccl_channel(_functions(), self.comm.ptr, control.size)
        # NCCL has no barrier: it is a sum of one byte that nobody reads.
        self.token = zeros(1, "uint8", device=device)
        self.token.numpy()  # it is there for all streams now
        self.woken, self.stopped = threading.Event(), threading.Event()
        self.watcher = threading.Thread(target=self.watch, name="anabranch-nccl", daemon=True)
        self.watcher.start()

    cdef tuple reduction(self, object dtype, str op):
        return _words(dtype, op)

    cdef Array temporary(self, Array array, Stream stream):
        return empty(array.shape, array.dtype, device=array._device, stream=stream)

    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1:
        cdef TaskState state = current_state()
        cdef CStream* queue = stream.get()
        cdef Submission submission
        cdef uint64_t number = 0
        cdef Point point
        if label.common and queue.capture() == NULL:
            number = self.channel.get().next_number()
        if queue.capture() != NULL and queue.capture().exclusive():
            raise CaptureError("a graphed function cannot make collectives: capture them with anabranch.capture")
        if batch.touches.size() == 0:
            batch.transfers[0].receive = self.token.data
            begin_untouched(&submission, state, queue)
        else:
            begin(&submission, state, queue, batch.touches.data(), batch.touches.size())
        # Without the interpreter lock: a first call waits for the other ranks, and another thread may have to end that.
        with nogil:
            point = self.channel.get().enqueue(deref(queue), move(batch.transfers), label)
        if tracing():
            name = label.name.decode()
            told = f"{name} {self.title}#{number}" if number else name
            show(queue, point, OperationKind.collective, told, batch.size)
        commit(&submission, state, point)
        if self.resting:
            self.resting = False
            self.woken.set()
        return 0

    # In flight

    def watch(self):
        """Report the first failure: an error of NCCL, a stream's, or that the oldest operation is late."""
        while not self.ended:
            reason, number = self.failure()
            if reason is not None and not self.ended:
                self.report(reason, number)
                return
            if self.rests():
                self.woken.wait()
            # Also after a wake: a thread that looked at each short operation would cost more than the operation.
            self.stopped.wait(_INTERVAL)

    # Nothing is in flight; a submission from now on wakes the watcher.
    cdef bint rests(self) except *:
        self.woken.clear()
        self.resting = True
        if self.channel.get().oldest().found or not self.channel.get().failure().empty():
            self.resting = False
        return self.resting

    cdef tuple failure(self):
        failure = self.channel.get().failure().decode(errors="replace")
        if failure:
            return f"its stream has failed: {failure}", 0
        found, number, *_, age = self.oldest()
        if found and age > self.timeout:
            return f"its {self.timeout:g} s are over", number
        error = int(self.comm.get_async_error())
        if error not in (_SUCCESS, _IN_PROGRESS):
            return f"NCCL reports the error {error}: {self.comm.get_last_error()}", 0
        return None, 0

    def has_channel(self, channel):
        """Return False: the progress thread does not see these."""
        return False

    @property
    def started(self):
        """How many operations of all ranks were started."""
        return self.channel.get().started()

    @property
    def is_waiting(self):
        """Whether an operation is not over."""
        return self.channel.get().oldest().found

    def lacks(self, int rank, started):
        """Return whether an operation cannot complete, as a rank has ended after so many operations of all ranks."""
        found, number, *_ = self.oldest()
        return found and not 0 < number <= started

    def oldest(self):
        """Return what is known of the oldest operation that is not over."""
        return described(self.channel.get().oldest())

    def fail(self, error):
        """Fail the streams that wait, and abort the communicator, whose kernels then end."""
        cdef Ref[CStream] one
        self.end()
        streams = {stream_of_record(one): None for one in self.channel.get().abandon()}
        for stream in streams:
            fail(stream, error)
        self.within(self.comm.abort)

    def close(self):
        """Destroy the communicator once everything is over. Waits for it, as NCCL does."""
        with nogil:
            self.channel.get().finish()
        self.end()
        self.within(self.comm.destroy)

    cdef int end(self) except -1:
        self.ended = True
        self.stopped.set()
        self.woken.set()
        return 0

    # Calls a function with the device's context current; returns its result.
    cdef object within(self, call, tuple arguments=()):
        cdef unique_ptr[Activation] _active = self.device.backend.activate()
        return call(*arguments)


# What `reduction` returns.
cdef tuple _words(dtype, str op):
    name, ops, each = dtype.name, _ops, 1
    if dtype.kind == "b":
        name, ops = "uint8", _boolean_ops
    elif dtype.kind == "c" and op in ("sum", "avg"):
        name, each = f"float{4 * dtype.itemsize}", 2  # pairs of numbers
    elif op == "avg" and dtype.kind != "f":
        name = None
    if name not in _types or op not in ops:
        raise TypeError(f"NCCL has no {op!r} of {dtype}: reduce another dtype, such as float32")
    return _types[name], each, ops[op]


# The functions of the library that nccl4py has loaded.
cdef NcclFunctions _functions() except *:
    cdef NcclFunctions functions
    try:
        library = ctypes.CDLL("libnccl.so.2", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError as error:
        raise Error(f"nccl4py has loaded no libnccl.so.2: {error}") from None
    functions.all_reduce = _address(library.ncclAllReduce)
    functions.reduce = _address(library.ncclReduce)
    functions.broadcast = _address(library.ncclBroadcast)
    functions.all_gather = _address(library.ncclAllGather)
    functions.reduce_scatter = _address(library.ncclReduceScatter)
    functions.send = _address(library.ncclSend)
    functions.receive = _address(library.ncclRecv)
    functions.group_start = _address(library.ncclGroupStart)
    functions.group_end = _address(library.ncclGroupEnd)
    functions.error_string = _address(library.ncclGetErrorString)
    return functions


cdef void* _address(function) except NULL:
    return <void*><uintptr_t>ctypes.cast(function, ctypes.c_void_p).value
