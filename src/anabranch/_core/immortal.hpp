#pragma once

#include <Python.h>

#include <cstdint>

namespace anabranch::python {

// Immortal objects are never freed and their references are not counted. On a free-threaded build, threads that use the
// same object contend for its reference count, and each such write costs more than the rest of a short launch. With the
// interpreter lock these functions do nothing.
#ifdef Py_GIL_DISABLED

// The calling thread must have created the object, and no other thread may have seen it.
inline void make_immortal(PyObject* object) noexcept { Py_SET_REFCNT(object, Py_ssize_t{UINT32_MAX} + 1); }

// Makes an object immortal once a thread other than its creator passes it, as CPython 3.13t does with functions. The
// caller holds a reference. If the creator stores a count at the same moment, the next call repeats the attempt.
inline void make_immortal_once_shared(PyObject* object) noexcept {
  if (object->ob_tid == _Py_ThreadId() || _Py_IsImmortal(object)) [[likely]]
    return;
  _Py_atomic_store_uint32_relaxed(&object->ob_ref_local, _Py_IMMORTAL_REFCNT_LOCAL);
}

#else

inline void make_immortal(PyObject*) noexcept {}
inline void make_immortal_once_shared(PyObject*) noexcept {}

#endif

}  // namespace anabranch::python
