"""Python's collector of cycles, held off where arrays are in use."""

cdef extern from "anabranch/_core/gc_pause.hpp" namespace "anabranch::python":
    bint pause_collector()
    void resume_collector()
