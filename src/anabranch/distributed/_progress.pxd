"""The core's collectives and progress thread as this package sees them. Contracts are in the headers."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport Failure, HostOperation, Ref, nanoseconds
from anabranch.distributed._engine cimport Waiting

cdef extern from "anabranch/collective/collective.hpp" namespace "anabranch" nogil:
    cdef cppclass CTransport "anabranch::Transport":
        pass
    cdef cppclass Collective(HostOperation):
        pass
    cdef cppclass Channel:
        uint64_t enqueue(const Ref[Collective]&) except +
        void withdraw(const Ref[Collective]&)
        void fail(const Ref[Failure]&)
        Waiting oldest() except +
        void close()
        uint64_t started()
        cbool lacks(int, uint64_t, nanoseconds) except +
        cbool idle() except +
    cdef cppclass CollectiveWork:
        void reserve() except +
        void withdraw()
    cdef cppclass ChannelFailure:
        Ref[Channel] channel
        Waiting collective
        cbool late
        string text
    cdef cppclass Progress:
        @staticmethod
        Progress& instance()
        int descriptor()
        vector[ChannelFailure] take_failures() except +
        size_t in_flight()
        cbool stop()

cdef extern from "anabranch/collective/mpi.hpp" namespace "anabranch" nogil:
    cdef cppclass MpiFunctions:
        MpiFunctions()
        void** start
        void* test
        void* get_count
        void* error_string
        void* comm_free
        void* in_place
        cbool large_counts
    Ref[CTransport] make_mpi_transport(const MpiFunctions&) except +


cdef class Transport:
    cdef Ref[CTransport] core
