#pragma once

#include <cstdint>
#include <span>

#include "anabranch/kernel.hpp"
#include "anabranch/point.hpp"

namespace anabranch::cuda {

class CudaKernel;
class CudaStream;

// Where a launch of a kernel that may fail tells of it, in the device's memory. All zero before the launch. Of the
// threads that fail, the one with the lowest position counts; each ends where it fails.
struct FaultRecord {
  std::uint64_t not_position;  // the complement of the position in the launch's index space, which is above 0
  std::int64_t place;          // into `Kernel::places`
  std::int64_t axis;           // of an index that is out of bounds, else -1
  std::int64_t index;
  std::int64_t size;
  std::uint64_t unused[2];
  std::uint32_t lock;  // taken by the thread that writes
  std::uint32_t unused_too;
};
static_assert(sizeof(FaultRecord) == 64);

// Launches a kernel that may fail. The stream holds what follows until the launch is over and its record was looked at,
// since work behind a failure does not run: it costs the stream what a host function does. Two points; returns the
// second.
Point launch_checked(CudaStream& stream, CudaKernel& kernel, const LaunchShape& shape,
                     std::span<const std::uint64_t> arguments);

}  // namespace anabranch::cuda
