from cpython.object cimport PyObject


cdef extern from "uncounted.hpp" namespace "anabranch::python":
    void keep_forever "anabranch::python::keep_forever"(object)
    void share(PyObject*)
