#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "anabranch/error.hpp"

namespace anabranch {

class Kernel;
struct LaunchShape;

// The index at which a kernel failed, as the kernel reported it. Places index `Kernel::places`; -1: none.
struct Fault {
  std::int32_t where = -1;  // the user's innermost line
  std::int32_t what = -1;   // what failed there: the same place, unless a library's function failed
  std::int32_t axis = -1;   // for an index that is out of bounds: the axis, the index and the size of the axis
  std::int64_t index = 0;
  std::int64_t size = 0;
  std::int64_t position = -1;  // in the launch's index space, if the kernel runs in blocks; else -1
  std::string raised;          // an exception as Numba pickles it, if no place describes the error
};

// Returns what kernel code on this thread has reported since the last call. Call it once after each range that failed.
Fault take_fault() noexcept;

// The failure of a launch whose kernel failed at `position` of its flattened index space, unless `fault` states
// another. `arguments` are those of the launch, whose last two slots contain the site that enqueued it (see
// `Kernel::may_fail`). Allocates. Any thread may call it.
Ref<Failure> kernel_failure(const Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
                            std::int64_t position, const Fault& fault) noexcept;

}  // namespace anabranch

// Compiled CPU kernels call this before they return the position at which they fail, from the innermost function
// outwards. `where` and `what`: places or -1; for each, the first value other than -1 counts. `axis` -1: no index is
// out of bounds. `raised`: `length` bytes, or null.
extern "C" void anabranch_fault(std::int64_t where, std::int64_t what, std::int64_t axis, std::int64_t index,
                                std::int64_t size, const char* raised, std::int64_t length) noexcept;

// A compiled CPU kernel that runs in blocks calls this before it returns the block in which it fails: the position of
// the failed index in the launch's flattened index space.
extern "C" void anabranch_failed_index(std::int64_t position) noexcept;
