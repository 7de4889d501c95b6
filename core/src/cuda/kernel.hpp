#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "anabranch/kernel/kernel.hpp"
#include "driver.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// A module of the device's primary context. Unloaded after the last reference was dropped and the device's work of that
// time is completed.
class CudaLibrary final : public Library {
 public:
  // Throws Error(value) with the driver's log.
  CudaLibrary(CudaBackend& device, const void* image);
  ~CudaLibrary() override;

  CudaBackend& device() const noexcept { return device_; }
  Ref<Kernel> find(const std::string& symbol, std::string name, KernelForm form) override;

 private:
  CudaBackend& device_;
  CUmodule module_ = nullptr;
};

class CudaKernel final : public Kernel {
 public:
  CudaKernel(CudaLibrary& library, CUfunction function, std::string name, KernelForm form);

  KernelAttributes attributes() override;
  std::vector<ParameterPlace> parameters() override;
  int resident_blocks(int threads, std::size_t shared_memory) override;

  CudaBackend& device() const noexcept { return library_->device(); }
  // `record`: for a kernel that may fail, the place for its report (see `FaultRecord`).
  void launch(CUstream stream, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
              CUdeviceptr record = 0);
  void launch(CUstream stream, const LaunchGrid& grid, std::span<const std::uint64_t> arguments);
  // The same as a node of a graph; none for an empty index space.
  void launch(Primitives& nodes, const LaunchShape& shape, std::span<const std::uint64_t> arguments);
  void launch(Primitives& nodes, const LaunchGrid& grid, std::span<const std::uint64_t> arguments);

 private:
  // Calls `submit` with the driver's parameters for the launch.
  template <class Submit>
  void prepare(const LaunchShape& shape, std::span<const std::uint64_t> arguments, CUdeviceptr record, Submit&& submit);
  template <class Submit>
  void prepare(const LaunchGrid& grid, std::span<const std::uint64_t> arguments, Submit&& submit);
  void check_launch(CUresult status);
  CUfunction function() const noexcept { return static_cast<CUfunction>(code); }
  int attribute(CUfunction_attribute which) const;
  void allow_shared_memory(std::uint32_t bytes);

  Ref<CudaLibrary> library_;
  std::vector<std::uint32_t> slots_;
  const bool flat_;
  const bool across_;
  const bool coarse_;
  bool takes_record_ = false;  // as its last parameter
  int most_threads_;           // of a block
  std::mutex mutex_;
  std::atomic<std::uint32_t> allowed_shared_memory_{48 * 1024};
};

// The kernel as one of the device. Throws Error(device) if it was loaded for another device.
CudaKernel& kernel_of(CudaBackend& device, Kernel& kernel);

}  // namespace anabranch::cuda
