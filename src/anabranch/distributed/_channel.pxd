"""The core's collectives as this package sees them. Contracts are in the headers."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport Failure, Pending, Ref, Site

cdef extern from "anabranch/collective/collective.hpp" namespace "anabranch" nogil:
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

cdef extern from "anabranch/collective/mpi.hpp" namespace "anabranch" nogil:
    cdef cppclass MpiFunctions:
        MpiFunctions()
        void** start
        void* test
        void* error_string
        void* comm_free
        void* in_place
    Ref[CTransport] make_mpi_transport(const MpiFunctions&) except +
