// Included before everything else in each Cython module: the traceback of an error of this package ends at the line of
// the program that made the mistake, as that of a function in C does. Other errors keep the frames of Cython's
// functions.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <cstring>

namespace anabranch {

// Whether it is a subclass of `anabranch.Error`, by its name: the class is not at hand in a module that is just being
// imported.
inline bool ends_at_caller(PyObject* error_type) noexcept {
  auto* type = reinterpret_cast<PyTypeObject*>(error_type);
  while (type && type->tp_base != reinterpret_cast<PyTypeObject*>(PyExc_Exception)) type = type->tp_base;
  return type && std::strcmp(type->tp_name, "Error") == 0;
}

// Cython adds a frame wherever an error leaves a function or comes to an `except`. Here it adds none, so the frames
// that there are belong to the program, whose functions the package has called.
inline int add_frame(PyFrameObject* frame) noexcept {
  if (!ends_at_caller(PyErr_Occurred())) return PyTraceBack_Here(frame);
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (traceback == Py_None) Py_CLEAR(traceback);
  PyErr_Restore(type, value, traceback);
  return 0;
}

// The code of an `except` does not expect an error without a traceback: there it is None.
inline PyObject* get_traceback(PyObject* error) noexcept {
  PyObject* const traceback = PyException_GetTraceback(error);
  if (traceback || !ends_at_caller(reinterpret_cast<PyObject*>(Py_TYPE(error)))) return traceback;
  return Py_NewRef(Py_None);
}

inline void normalize(PyObject** type, PyObject** value, PyObject** traceback) noexcept {
  PyErr_NormalizeException(type, value, traceback);
  if (!*traceback && ends_at_caller(*type)) *traceback = Py_NewRef(Py_None);
}

}  // namespace anabranch

#define PyTraceBack_Here(frame) anabranch::add_frame(frame)
#define PyException_GetTraceback(error) anabranch::get_traceback(error)
#define PyErr_NormalizeException(type, value, traceback) anabranch::normalize(type, value, traceback)
