"""Pauses of Python's cyclic garbage collector while a function uses arrays that a collection could close."""

cdef extern from "anabranch/_core/gc_pause.hpp" namespace "anabranch::python":
    bint pause_collector()
    void resume_collector()
