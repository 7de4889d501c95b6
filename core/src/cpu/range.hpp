#pragma once

#include <cstdint>

#include "anabranch/graph.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

// Runs the indices [begin, end) of a space.
using RangeFunction = void (*)(std::int64_t begin, std::int64_t end, const std::int64_t* dims, const void* arguments);

// Indices to be run, and what runs them. Owns nothing.
struct Range {
  RangeFunction function;
  const std::int64_t* dims;
  std::int64_t size;
  const void* arguments;
};

// Who has a range run.
class RangeOwner {
 public:
  // The last index of a range that parked was run, by the worker that calls this. Called once, maybe before `run_range`
  // has returned.
  virtual void range_over() noexcept = 0;

 protected:
  ~RangeOwner() = default;
};

// Runs the range on a worker of the pool, alone while that is quick, else in chunks that idle workers of the pool join.
// What it consists of stays until it is over.
Step run_range(const Range& range, Pool& pool, bool urgent, RangeOwner& owner) noexcept;

// The ranges of what devices are asked for; each refers to what it is made of.
inline Range kernel_range(const Kernel& kernel, const LaunchShape& shape, const void* arguments) noexcept {
  return {reinterpret_cast<RangeFunction>(kernel.code), shape.dims, shape.size(), arguments};
}
Range copy_range(const CopyWork& copy) noexcept;
Range fill_range(const FillWork& fill) noexcept;

}  // namespace anabranch::cpu
