"""Python's collector of cycles, held off where arrays are in use."""

cdef extern from "collector.hpp" namespace "anabranch::python":
    bint pause_collector()
    void resume_collector()
