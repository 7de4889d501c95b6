#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "anabranch/memory/memory.hpp"
#include "driver.hpp"
#include "kept_blocks.hpp"

namespace anabranch::cuda {

class CudaBackend;
class CudaStream;

// The memory of one device, from a pool of the driver, allocated and freed in stream order.
class MemoryPool {
 public:
  explicit MemoryPool(CudaBackend& device) : device_(device) {}

  // Called at the device's first use, with its context current. Throws DriverError.
  void open();
  // Throws Error(memory).
  Allocation allocate(CudaStream* stream, std::size_t bytes);
  void free(Block block, std::vector<Use>& uses) noexcept;
  // For memory that no stream keeps for itself.
  void free_after(CUdeviceptr pointer, std::vector<Use> uses) noexcept;
  // For other libraries, in the order of a stream that they name. Throws Error(memory).
  CUdeviceptr allocate_on(CUstream stream, std::size_t bytes);
  void free_on(CUstream stream, CUdeviceptr pointer) noexcept;
  // Unused bytes that the pool or a stream holds.
  std::size_t unused();
  // Releases unused memory beyond the threshold.
  void trim() noexcept;
  // Gives another device's kernels and copies access to the pool's memory if the hardware can. Asks once per device.
  void share_with(CudaBackend& other);

 private:
  struct Late;

  CUresult take(CUdeviceptr& pointer, std::size_t bytes, CUstream stream);
  void check(CUresult status, std::size_t bytes);
  // Frees on a stream of this pool, after the uses. Returns false if the driver does not have all of them.
  bool free_behind(CUdeviceptr pointer, const std::vector<Use>& uses) noexcept;
  void free_now(CUdeviceptr pointer) noexcept;

  CudaBackend& device_;
  CUmemoryPool pool_ = nullptr;
  cuuint64_t threshold_ = 0;        // the freed memory that the pool keeps for later allocations
  CUstream allocations_ = nullptr;  // never waits for anything
  CUstream frees_ = nullptr;        // waits for the streams that used the freed memory
  std::mutex mutex_;
  std::vector<int> shared_with_;
};

// Pages that every device can access; the system's heap if there is no driver.
HostSource pinned_source();

// The ordinal of the device whose memory contains the pointer; -1 for host memory, pinned or not, and if there is no
// device.
int device_of(const void* pointer);

}  // namespace anabranch::cuda
