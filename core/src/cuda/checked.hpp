#pragma once

#include <cstdint>
#include <span>

#include "anabranch/kernel/kernel.hpp"
#include "anabranch/stream/point.hpp"

namespace anabranch::cuda {

class CudaKernel;
class CudaStream;

// The record, in device memory, in which a launch of a kernel that may fail reports a failure. All zero before the
// launch. Each failing thread ends where it fails; the one with the lowest position counts.
struct FaultRecord {
  std::uint64_t not_position;  // the complement of the position in the launch's index space, so never 0
  std::int64_t place;          // into `Kernel::places`
  std::int64_t axis;           // of an index that is out of bounds; else -1
  std::int64_t index;
  std::int64_t size;
  std::uint64_t unused[2];
  std::uint32_t lock;  // taken by the thread that writes
  std::uint32_t unused_too;
};
static_assert(sizeof(FaultRecord) == 64);

// Launches a kernel that may fail. The stream holds all later work until the launch is completed and the host has read
// its record, because work after a failure must not run. It costs the stream as much as a host function. Adds two
// points and returns the second.
Point launch_checked(CudaStream& stream, CudaKernel& kernel, const LaunchShape& shape,
                     std::span<const std::uint64_t> arguments);

}  // namespace anabranch::cuda
