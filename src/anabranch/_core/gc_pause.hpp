#pragma once

#include <Python.h>

// Up to Python 3.11 the collector may run whenever an object is created, and its finalizers may close arrays. From 3.12
// on it runs only between bytecode instructions.
namespace anabranch::python {

// Returns whether the caller must resume the collector.
inline bool pause_collector() noexcept {
#if PY_VERSION_HEX < 0x030C0000
  return PyGC_Disable() != 0;
#else
  return false;
#endif
}

inline void resume_collector() noexcept { PyGC_Enable(); }

}  // namespace anabranch::python
