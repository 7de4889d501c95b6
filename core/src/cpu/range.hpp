#pragma once

#include <cstdint>
#include <span>

#include "anabranch/graph/graph.hpp"
#include "anabranch/kernel/fault.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

// Runs the indices [begin, end) of a space. Returns `end`, or the first index that failed; see `Kernel`.
using RangeFunction = std::int64_t (*)(std::int64_t begin, std::int64_t end, const std::int64_t* dims,
                                       const void* arguments);

// Indices to run, or blocks of a kernel that runs in blocks, and the function that runs them. Owns nothing.
struct Range {
  RangeFunction function;
  const std::int64_t* dims;
  std::int64_t size;
  const void* arguments;
  // For a kernel that may fail, else null: the kernel, its launch's shape and the number of slots of its arguments.
  const Kernel* kernel = nullptr;
  const LaunchShape* shape = nullptr;
  std::size_t slots = 0;
};

// The owner of a running range.
class RangeOwner {
 public:
  // Called once by the worker that ran the last index of a range that parked, possibly before `run_range` has returned.
  // `failure`: that of the lowest index that failed, or null.
  virtual void range_over(Ref<Failure> failure) noexcept = 0;

 protected:
  ~RangeOwner() = default;
};

// Runs the range on a worker of the pool: alone if it is short, else in chunks that idle workers of the pool share. The
// caller keeps everything that `range` refers to until it is over. Sets `failure` if the range is done and an index
// failed; later indices may or may not have run.
Step run_range(const Range& range, Pool& pool, bool urgent, RangeOwner& owner, Ref<Failure>& failure) noexcept;

// The ranges of a device's operations. Each refers to its arguments.
inline Range kernel_range(const Kernel& kernel, const LaunchShape& shape,
                          std::span<const std::uint64_t> arguments) noexcept {
  std::int64_t size = shape.size();
  if (kernel.in_blocks()) [[unlikely]] {
    const auto blocks = shape.grid_of(kernel.block);
    size = blocks[0] * blocks[1] * blocks[2];
  }
  return {reinterpret_cast<RangeFunction>(kernel.code),
          shape.dims,
          size,
          arguments.data(),
          kernel.may_fail() ? &kernel : nullptr,
          &shape,
          arguments.size()};
}
Range copy_range(const CopyWork& copy) noexcept;
Range fill_range(const FillWork& fill) noexcept;

}  // namespace anabranch::cpu
