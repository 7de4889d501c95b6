#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "anabranch/memory/memory.hpp"

namespace anabranch::null {

// Addresses without memory; none is given out twice.
class AddressSpace {
 public:
  explicit AddressSpace(std::size_t limit) : limit_(limit) {}

  // Throws Error(memory) if the request would exceed `limit`.
  std::byte* allocate(std::size_t bytes);
  void free(std::size_t bytes, std::vector<Use> uses) noexcept;
  std::size_t available();

 private:
  struct Late;

  const std::size_t limit_;
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
};

}  // namespace anabranch::null
