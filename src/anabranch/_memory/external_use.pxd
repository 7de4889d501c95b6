from anabranch._core.core cimport ByteRange, CStream, HazardMode, Ref, Site, Storage, translate


cdef extern from "anabranch/hazard/external_use.hpp" namespace "anabranch" nogil:
    cdef cppclass CExternalUse "anabranch::ExternalUse":
        @staticmethod
        Ref[CExternalUse] open(Ref[CStream]) except +translate
        void close(HazardMode, Site) except +translate
    # Lends bytes to the uses that are open on the stream.
    void lend "anabranch::ExternalUse::lend"(CStream&, Storage&, ByteRange) except +translate


cdef class ExternalUse:
    cdef Ref[CExternalUse] core
