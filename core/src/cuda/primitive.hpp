#pragma once

#include <cstddef>
#include <cstdint>

#include "driver.hpp"

namespace anabranch::cuda {

// The attributes of a kernel's node beyond its parameters. They cannot change once the graph is instantiated.
struct LaunchAttributes {
  std::uint32_t cluster[3] = {};  // blocks per cluster; 0: none
  bool cooperative = false;
  bool operator==(const LaunchAttributes&) const = default;
};

// Receives the driver operations that make up a copy, a fill or a launch, in order, to make nodes of a graph. Pointers
// are valid during the call.
class Primitives {
 public:
  virtual void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) = 0;
  // `count` values of 1, 2 or 4 bytes.
  virtual void set(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) = 0;
  virtual void launch(const CUDA_KERNEL_NODE_PARAMS& kernel, const LaunchAttributes& attributes) = 0;

 protected:
  ~Primitives() = default;
};

}  // namespace anabranch::cuda
