#pragma once

#include <Python.h>

// Up to Python 3.11 the collector may run wherever an object is made, and with it finalizers, which may close arrays;
// from 3.12 on it runs between instructions of Python code alone.
namespace anabranch::python {

// Whether it is to be resumed.
inline bool pause_collector() noexcept {
#if PY_VERSION_HEX < 0x030C0000
  return PyGC_Disable() != 0;
#else
  return false;
#endif
}

inline void resume_collector() noexcept { PyGC_Enable(); }

}  // namespace anabranch::python
