#pragma once

#include <Python.h>

#include <cstdint>

namespace anabranch::python {

// Objects that are never freed. Where no interpreter lock keeps threads apart, those that use one object write its
// count of references by turns, each of which costs more than the rest of a short launch. With the lock nothing needs
// be done.
#ifdef Py_GIL_DISABLED

// For what lives as long as the process, made by this thread and not yet seen by others.
inline void keep_forever(PyObject* object) noexcept { Py_SET_REFCNT(object, Py_ssize_t{UINT32_MAX} + 1); }

// For what the caller holds: not freed any more from when a thread that did not make it passes it here, as happens to
// functions on CPython 3.13t. Its maker may be storing a count at that moment: then nothing is lost but this, until the
// next time.
inline void share(PyObject* object) noexcept {
  if (object->ob_tid == _Py_ThreadId() || _Py_IsImmortal(object)) [[likely]]
    return;
  _Py_atomic_store_uint32_relaxed(&object->ob_ref_local, _Py_IMMORTAL_REFCNT_LOCAL);
}

#else

inline void keep_forever(PyObject*) noexcept {}
inline void share(PyObject*) noexcept {}

#endif

}  // namespace anabranch::python
