#pragma once

// Included before everything else in each extension module. An error of this library describes what the caller has
// done, so its traceback ends there: the frames that Cython adds for the functions on the way are left out.

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

namespace anabranch::python {

// Whether an exception's class derives from anabranch.Error. No exception may be set. Looked up each time: this path is
// not hot, and a static would exist once per extension module.
inline bool is_ours(PyObject* type) {
  PyObject* errors = PyDict_GetItemString(PyImport_GetModuleDict(), "anabranch._core.errors");
  PyObject* base = errors ? PyObject_GetAttrString(errors, "Error") : nullptr;
  const bool found = type && base && PyErr_GivenExceptionMatches(type, base);
  Py_XDECREF(base);
  PyErr_Clear();
  return found;
}

// In the place of PyTraceBack_Here, which adds a frame to the exception that is set.
inline int add_traceback(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* error = PyErr_GetRaisedException();
  const bool hidden = error && is_ours(reinterpret_cast<PyObject*>(Py_TYPE(error)));
  PyErr_SetRaisedException(error);
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool hidden = is_ours(type);
  PyErr_Restore(type, value, traceback);
#endif
  return hidden ? 0 : PyTraceBack_Here(frame);
}

}  // namespace anabranch::python

#define PyTraceBack_Here anabranch::python::add_traceback
