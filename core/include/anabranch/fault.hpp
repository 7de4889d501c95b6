#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "anabranch/error.hpp"

namespace anabranch {

class Kernel;
struct LaunchShape;

// What a kernel told of the index at which it failed. Places are numbers into `Kernel::places`, -1: none.
struct Fault {
  std::int32_t where = -1;  // the user's line, the innermost one
  std::int32_t what = -1;   // what went wrong there; the same place, unless a library's function failed
  std::int32_t axis = -1;   // of an index that is out of bounds: the axis, the index, the size of the axis
  std::int64_t index = 0;
  std::int64_t size = 0;
  std::string raised;  // an exception as Numba pickles it, if nothing else says what went wrong
};

// Returns what kernel code on this thread has told since the last call. Called once after each range that failed.
Fault take_fault() noexcept;

// The failure of a launch whose kernel failed at `position` of its flattened index space. `arguments` are the launch's,
// with the site that enqueued it in the last two slots (see `Kernel::may_fail`). Allocates; any thread.
Ref<Failure> kernel_failure(const Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
                            std::int64_t position, const Fault& fault) noexcept;

}  // namespace anabranch

// What compiled kernels call on a CPU before they return the position at which they fail, from the innermost function
// outwards. `where`, `what`: places or -1; of each the first that is none of those counts. `axis` -1: no index is out
// of bounds. `raised`: `length` bytes, or null.
extern "C" void anabranch_fault(std::int64_t where, std::int64_t what, std::int64_t axis, std::int64_t index,
                                std::int64_t size, const char* raised, std::int64_t length) noexcept;
