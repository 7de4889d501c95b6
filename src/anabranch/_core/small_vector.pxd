"""Vectors with inline storage for a few elements."""

from libc.stdint cimport uint64_t

cdef extern from "anabranch/_core/small_vector.hpp" namespace "anabranch::python" nogil:
    cdef cppclass Text:
        size_t size()
        char* data()
        void push_back(char) except +
        void append(const char*, size_t) except +
    cdef cppclass Words:
        size_t size()
        uint64_t* data()
        void push_back(uint64_t) except +
        uint64_t* extend(size_t) except +
    cdef cppclass Addresses:
        size_t size()
        const void*& operator[](size_t)
        void push_back(const void*) except +
