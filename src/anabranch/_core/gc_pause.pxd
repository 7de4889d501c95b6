"""Pauses of Python's cyclic garbage collector, for functions whose arrays a collection could close."""

cdef extern from "anabranch/_core/gc_pause.hpp" namespace "anabranch::python":
    bint pause_collector()
    void resume_collector()
