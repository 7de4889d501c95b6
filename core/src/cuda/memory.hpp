#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "anabranch/memory.hpp"
#include "driver.hpp"
#include "kept_blocks.hpp"

namespace anabranch::cuda {

class CudaBackend;
class CudaStream;

// Memory of one device, from a pool of the driver's, allocated and freed in stream order. Made at the device's first
// use, with its context current.
class MemoryPool {
 public:
  explicit MemoryPool(CudaBackend& device) : device_(device) {}

  // Throws DriverError.
  void open();
  // Throws Error(memory).
  Allocation allocate(CudaStream* stream, std::size_t bytes);
  void free(Block block, std::vector<Use>& uses) noexcept;
  // For others, in the order of a stream that they name. Throws Error(memory).
  CUdeviceptr allocate_on(CUstream stream, std::size_t bytes);
  void free_on(CUstream stream, CUdeviceptr pointer) noexcept;
  // Bytes that the pool or a stream holds and nobody uses.
  std::size_t unused();
  // Keeps no more of that than the threshold.
  void trim() noexcept;
  // Lets another device's kernels and copies reach the pool's memory, if the hardware can. Asked once per device.
  void share_with(CudaBackend& other);

 private:
  struct Late;

  CUresult take(CUdeviceptr& pointer, std::size_t bytes, CUstream stream);
  void check(CUresult status, std::size_t bytes);
  // On a stream of ours, behind the uses; false if the driver does not know them all.
  bool free_behind(CUdeviceptr pointer, const std::vector<Use>& uses) noexcept;
  void free_now(CUdeviceptr pointer) noexcept;

  CudaBackend& device_;
  CUmemoryPool pool_ = nullptr;
  cuuint64_t threshold_ = 0;        // what the pool keeps of freed memory for the next allocation
  CUstream allocations_ = nullptr;  // never waits for anything
  CUstream frees_ = nullptr;        // waits for the streams that used what is freed
  std::mutex mutex_;
  std::vector<int> shared_with_;
};

// Pages that every device reaches, and none if there is no driver.
HostSource pinned_source();

// The ordinal of the device whose memory the pointer is in; -1 for memory of the host, pinned or not, and where there
// is no device.
int device_of(const void* pointer);

}  // namespace anabranch::cuda
