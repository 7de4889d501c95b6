from cpython.object cimport PyObject


cdef extern from "anabranch/_core/immortal.hpp" namespace "anabranch::python":
    void keep_forever "anabranch::python::keep_forever"(object)
    void share(PyObject*)
