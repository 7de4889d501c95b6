#pragma once

#include <Python.h>

#include <new>

#include "anabranch/error.hpp"

namespace anabranch::python {

// Sets the Python exception for a core error. Looks the class up each time: this path is not hot, and a static would
// exist once per extension module.
inline void set_error(const char* name, const char* message) {
  PyObject* module = PyImport_ImportModule("anabranch._core.errors");
  if (!module) return;
  PyObject* type = PyObject_GetAttrString(module, name);
  Py_DECREF(module);
  if (!type) return;
  PyErr_SetString(type, message);
  Py_DECREF(type);
}

inline void set_driver_error(int code, const std::string& name, const char* message) {
  PyObject* module = PyImport_ImportModule("anabranch._core.errors");
  if (!module) return;
  PyObject* error = PyObject_CallMethod(module, "DriverError", "iss", code, name.c_str(), message);
  Py_DECREF(module);
  if (!error) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

// Completes the message of a failed kernel with what only Python has: the line of the launch and the exception.
inline void set_kernel_error(const Failure& failure) {
  if (failure.site().code == 0 && failure.raised().empty()) return set_error("KernelError", failure.message().c_str());
  PyObject* module = PyImport_ImportModule("anabranch.kernels._failure");
  if (!module) return;
  PyObject* message = PyObject_CallMethod(
      module, "message_of", "sniN", failure.message().c_str(), static_cast<Py_ssize_t>(failure.site().code),
      static_cast<int>(failure.site().instruction),
      PyBytes_FromStringAndSize(failure.raised().data(), static_cast<Py_ssize_t>(failure.raised().size())));
  Py_DECREF(module);
  if (!message) return;
  if (const char* text = PyUnicode_AsUTF8(message)) set_error("KernelError", text);
  Py_DECREF(message);
}

// Raises a copy of `cause`. Each observer of a failure gets its own: a shared exception would collect all tracebacks
// and keep their frames alive.
inline void raise_copy(PyObject* cause) {
  PyObject* module = PyImport_ImportModule("copy");
  PyObject* copy = module ? PyObject_CallMethod(module, "copy", "O", cause) : nullptr;
  Py_XDECREF(module);
  if (!copy || !PyExceptionInstance_Check(copy)) {
    // The class cannot be copied, since its constructor takes other arguments than it stores.
    PyErr_Clear();
    Py_XDECREF(copy);
    copy = cause;
    Py_INCREF(copy);
    PyException_SetTraceback(copy, Py_None);
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(copy)), copy);
  Py_DECREF(copy);
}

// Adds a note to the Python exception that is set, unless it has one.
inline void add_note(const char* note) {
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  const bool bare = error && !PyObject_HasAttrString(error, "__notes__");
  PyObject* done = bare ? PyObject_CallMethod(error, "add_note", "s", note) : nullptr;
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, error, traceback);
}

// Raises the failure, as the exception of this package that it is, without the note that it was raised. Returns -1.
inline int set_failure_error(const Failure& failure) {
  if (auto* cause = static_cast<PyObject*>(failure.payload())) {
    raise_copy(cause);
  } else if (failure.code() != 0) {
    set_driver_error(failure.code(), failure.name(), failure.message().c_str());
  } else {
    set_kernel_error(failure);
  }
  return -1;
}

// Called by `except +`: converts the C++ exception in flight into a Python exception. Holds the interpreter lock.
inline void translate() noexcept {
  try {
    throw;
  } catch (const AsyncError& error) {
    const bool again = error.failure()->told();
    error.failure()->note_told();
    set_failure_error(*error.failure());
    // As in a notebook, where each later cell raises what the first one did. A driver's error ends the whole device.
    if (again && error.failure()->code() == 0) {
      add_note("Raised before. A stream that has failed runs nothing more: ab.Stream().use() makes another current.");
    }
  } catch (const DriverError& error) {
    set_driver_error(error.code(), error.name(), error.what());
  } catch (const Error& error) {
    switch (error.kind()) {
      case ErrorKind::value:
        PyErr_SetString(PyExc_ValueError, error.what());
        break;
      case ErrorKind::memory:
        set_error("OutOfMemoryError", error.what());
        break;
      case ErrorKind::device:
        set_error("DeviceError", error.what());
        break;
      case ErrorKind::event:
        set_error("EventError", error.what());
        break;
      case ErrorKind::capture:
        set_error("CaptureError", error.what());
        break;
      case ErrorKind::kernel:
        set_error("KernelError", error.what());
        break;
      case ErrorKind::fork:
        set_error("ForkError", error.what());
        break;
      case ErrorKind::collective:
        set_error("CollectiveError", error.what());
        break;
      case ErrorKind::driver:  // always a DriverError
        set_error("Error", error.what());
        break;
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace anabranch::python
