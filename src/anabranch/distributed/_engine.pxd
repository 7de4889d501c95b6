"""The operations of a communicator, between its checks and a transport. The core's contracts are in its headers."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from anabranch._core.core cimport Ref, Site, Storage, Touch
from anabranch._memory.array cimport Array
from anabranch._stream.stream cimport Stream

cdef extern from "anabranch/collective/collective.hpp" namespace "anabranch" nogil:
    cdef enum class Verb "anabranch::Verb":
        all_reduce
        reduce
        broadcast
        all_gather
        reduce_scatter
        all_to_all
        gather
        scatter
        send
        receive
        barrier
    const char* name_of(Verb)
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
        const char* name
        Site site
        cbool common
    cdef cppclass Waiting:
        cbool found
        uint64_t number
        Label label
        double seconds

cdef extern from *:
    """
    #include <anabranch/_core/small_vector.hpp>
    #include <anabranch/collective/collective.hpp>

    using Touches = anabranch::python::SmallVector<anabranch::Touch, 4>;

    // The transfers of one operation, and the memory that they access.
    struct Batch {
      std::vector<anabranch::Transfer> transfers;
      Touches touches;
      std::vector<anabranch::Ref<anabranch::Storage>> kept;
      anabranch::Division division;
      std::size_t size = 0;  // in bytes, for traces
    };
    """
    cdef cppclass Touches:
        size_t size()
        Touch* data()
        void push_back(Touch) except +
    cdef cppclass Batch:
        Batch()
        vector[Transfer] transfers
        Touches touches
        vector[Ref[Storage]] kept
        Division division
        size_t size


cdef enum:
    DTYPES = 16     # codes of dtypes are less
    OPERATIONS = 5  # of a reduction


cdef class Call:
    """One transfer, with arguments that were checked."""
    cdef Verb verb
    cdef Array send             # or None
    cdef Array receive          # or None
    cdef bint in_place          # whether what it receives into is read before
    cdef int64_t count          # elements that each rank contributes, or gets
    cdef int op                 # of a reduction, an index into `OPS`; -1 for other calls
    cdef int peer               # the root, or the other rank of a message
    # In the transport's words, once `Engine.check` has found them.
    cdef int64_t words
    cdef uintptr_t type_word
    cdef uintptr_t op_word

    cdef Array array(self)

cdef Call make_call(Verb verb, Array send, Array receive, bint in_place, int64_t count, int op, int peer)
# The index of an operation in `OPS`. Raises ValueError.
cdef int op_number(object op) except -1


cdef struct Words:
    # How a transport reduces a dtype: its type, how many of it an element is, and its operation.
    bint known
    uintptr_t type
    int64_t each
    uintptr_t op


cdef class Engine:
    """Collectives of one communicator over one transport."""
    cdef uintptr_t byte         # the transport's type for what is only moved; set by its constructor
    cdef Words found[DTYPES][OPERATIONS]

    # Finds the words of a call. Raises TypeError for a dtype or operation that the transport does not have.
    cdef int check(self, Call call) except -1
    # For `check`: a type, how many of it an element is, and an operation. Raises TypeError.
    cdef tuple reduction(self, object dtype, str op)
    # Enqueues calls as one operation of a stream, with the copies that they need before and after it; `grouped`: the
    # messages of a group.
    cdef int enqueue(self, list calls, Stream stream, bint grouped) except -1

    # For `enqueue`: whether the transport takes the array as it is; an array that it takes instead; what the received
    # numbers are divided by, or 0; and the operation itself.
    cdef bint is_ready(self, Array array)
    cdef Array temporary(self, Array array, Stream stream)
    cdef int divisor(self, Call call)
    cdef int submit(self, Stream stream, const Label& label, Batch& batch) except -1

# Whether some bytes are of both arrays.
cdef bint share_memory(Array one, Array other)
cdef tuple described(const Waiting& waiting)
