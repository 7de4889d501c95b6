from anabranch._core.core cimport ByteRange, CStream, HazardMode, Ref, Site, Storage, translate


cdef extern from "anabranch/loan.hpp" namespace "anabranch" nogil:
    cdef cppclass CLoan "anabranch::Loan":
        @staticmethod
        Ref[CLoan] open(Ref[CStream]) except +translate
        void close(HazardMode, Site) except +translate
    # Lends bytes to the loans that are open on the stream.
    void lend "anabranch::Loan::lend"(CStream&, Storage&, ByteRange) except +translate


cdef class ExternalUse:
    cdef Ref[CLoan] core
