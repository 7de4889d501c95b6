from cpython.object cimport PyObject


cdef extern from "anabranch/_core/immortal.hpp" namespace "anabranch::python":
    void make_immortal "anabranch::python::make_immortal"(object)
    void make_immortal_once_shared(PyObject*)
