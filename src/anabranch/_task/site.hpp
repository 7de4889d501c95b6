#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#if PY_VERSION_HEX < 0x030C0000
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "internal/pycore_frame.h"
#endif

#include "anabranch/hazard/history.hpp"

namespace anabranch::python {

// Code objects of the program's functions that contain sites; they are never freed. Any thread.
class Codes {
 public:
  bool has(const void* code) const noexcept { return code && place(code).load(std::memory_order_relaxed) == code; }
  // May replace another entry, which is then a miss.
  void add(const void* code) noexcept { place(code).store(code, std::memory_order_relaxed); }

 private:
  static constexpr unsigned bits = 10;
  std::atomic<const void*>& place(const void* code) const noexcept {
    return all_[(reinterpret_cast<std::uintptr_t>(code) * 0x9E3779B97F4A7C15U) >> (64 - bits)];
  }
  mutable std::atomic<const void*> all_[std::size_t{1} << bits] = {};
};

// The site of this thread's innermost function if `codes` has its code; otherwise empty. The thread must run Python.
// Does not create objects, not even a frame.
inline Site site_within(const Codes& codes) noexcept {
  PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
  auto* const frame = thread->current_frame;
#else
  auto* const frame = thread->cframe->current_frame;
#endif
  if (!frame) return {};
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* const code = PyUnstable_InterpreterFrame_GetCode(frame);
  Py_DECREF(code);  // the frame holds a reference
  if (!codes.has(code)) return {};
  return {reinterpret_cast<std::uintptr_t>(code), PyUnstable_InterpreterFrame_GetLasti(frame)};
#else
  PyCodeObject* const code = frame->f_code;
  if (_PyFrame_IsIncomplete(frame) || !codes.has(code)) return {};
  const int instruction = _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
  return {reinterpret_cast<std::uintptr_t>(code), instruction};
#endif
}

}  // namespace anabranch::python
