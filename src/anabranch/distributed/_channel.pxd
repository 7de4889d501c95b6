"""The core's collectives as this package sees them. Contracts are in the headers."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Failure, Pending, Ref
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState
from anabranch.distributed._engine cimport Batch, Label, Touches, Waiting

cdef extern from "anabranch/collective/collective.hpp" namespace "anabranch" nogil:
    cdef cppclass CTransport "anabranch::Transport":
        pass
    cdef cppclass Collective(Pending):
        pass
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

cdef extern from "anabranch/collective/mpi.hpp" namespace "anabranch" nogil:
    cdef cppclass MpiFunctions:
        MpiFunctions()
        void** start
        void* test
        void* error_string
        void* comm_free
        void* in_place
    Ref[CTransport] make_mpi_transport(const MpiFunctions&) except +


cdef class Channel:
    cdef Ref[CChannel] core
    cdef str title

    # Enqueues the transfers as one operation of a stream.
    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1
    cdef int record(
        self, TaskState state, CStream* stream, const char* name, Touches& touches,
        const Ref[CCollectiveWork]& work) except -1
    cdef int enqueue(
        self, TaskState state, CStream* stream, const char* name, Touches& touches,
        const Ref[Collective]& collective, size_t size) except -1
