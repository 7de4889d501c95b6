#pragma once

#include <mutex>

#include "driver.hpp"

namespace anabranch::cuda {

class CudaBackend;

// The kernels of condition.cu, which set the conditions of a graph's branches and loops. Loaded at first use, because a
// driver without conditional nodes cannot link them.
class Conditions {
 public:
  explicit Conditions(CudaBackend& device) : device_(device) {}

  // Whether the driver has conditional nodes.
  static bool exist() noexcept;
  // Sets one handle to whether a flag is set. Throws DriverError.
  CUfunction one();
  // Sets two handles, the second to whether the flag is not set.
  CUfunction both();

 private:
  void load();

  CudaBackend& device_;
  std::once_flag loaded_;
  CUfunction one_ = nullptr;
  CUfunction both_ = nullptr;
};

}  // namespace anabranch::cuda
