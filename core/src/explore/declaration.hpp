#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "anabranch/hazard/history.hpp"
#include "anabranch/memory/memory.hpp"

namespace anabranch::explore {

// An access that a kernel's parameter is declared to make. Refers to no storage: the memory lives until the operation
// has run.
class Declared {
 public:
  explicit Declared(const Touch& touch);

  Access access() const noexcept { return access_; }
  std::byte* first() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return bytes_; }
  const std::optional<Layout>& layout() const noexcept { return layout_; }
  // Calls `see(address)` for each byte.
  void each(const std::function<void(std::byte*)>& see) const;

 private:
  std::byte* memory_;             // the lowest byte
  std::size_t bytes_;             // between the lowest and the highest
  std::optional<Layout> layout_;  // none: all of these bytes
  std::byte* start_;              // with a layout: the first element
  Access access_;
};

// What a kernel does that it did not declare.
struct Violation {
  std::size_t parameter;  // which of the declared accesses
  bool written;           // it writes what it declared to read; else it reads what it declared to write
};

// Runs a kernel, a few times by way of trial, and compares what it does to memory with what it declared. Afterwards the
// memory is as before. What is declared to be written alone begins with other values each time, on which nothing may
// depend; what is declared to be read alone must stay the same.
std::optional<Violation> verify(std::span<const Declared> declared, const std::function<void()>& trial);

}  // namespace anabranch::explore
