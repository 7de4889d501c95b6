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

// Runs a kernel several times as a trial and compares its memory accesses with its declarations. Afterwards the memory
// is as before. Write-only memory begins each trial with other values, on which no result may depend; read-only memory
// must not change.
std::optional<Violation> verify(std::span<const Declared> declared, const std::function<void()>& trial);

}  // namespace anabranch::explore
