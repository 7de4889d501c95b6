#pragma once

#include <cstdint>
#include <span>

#include "anabranch/fault.hpp"
#include "anabranch/graph.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

// Runs the indices [begin, end) of a space. Returns `end`, or the first index that failed, see `Kernel`.
using RangeFunction = std::int64_t (*)(std::int64_t begin, std::int64_t end, const std::int64_t* dims,
                                       const void* arguments);

// Indices to be run, and what runs them. Owns nothing.
struct Range {
  RangeFunction function;
  const std::int64_t* dims;
  std::int64_t size;
  const void* arguments;
  // Of a kernel that may fail, else null: what names it, its launch's shape and how many slots its arguments take.
  const Kernel* kernel = nullptr;
  const LaunchShape* shape = nullptr;
  std::size_t slots = 0;
};

// Who has a range run.
class RangeOwner {
 public:
  // The last index of a range that parked was run, by the worker that calls this. Called once, maybe before `run_range`
  // has returned. `failure`: that of the lowest index that failed, or null.
  virtual void range_over(Ref<Failure> failure) noexcept = 0;

 protected:
  ~RangeOwner() = default;
};

// Runs the range on a worker of the pool, alone while that is quick, else in chunks that idle workers of the pool join.
// What it consists of stays until it is over. `failure` is set if it is done and an index has failed; indices above
// that one may have run or not.
Step run_range(const Range& range, Pool& pool, bool urgent, RangeOwner& owner, Ref<Failure>& failure) noexcept;

// The ranges of what devices are asked for; each refers to what it is made of.
inline Range kernel_range(const Kernel& kernel, const LaunchShape& shape,
                          std::span<const std::uint64_t> arguments) noexcept {
  return {reinterpret_cast<RangeFunction>(kernel.code), shape.dims, shape.size(),    arguments.data(),
          kernel.may_fail() ? &kernel : nullptr,        &shape,     arguments.size()};
}
Range copy_range(const CopyWork& copy) noexcept;
Range fill_range(const FillWork& fill) noexcept;

}  // namespace anabranch::cpu
