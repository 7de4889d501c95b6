// The end of a device: by a fault that its context does not survive, or with the process.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "backend.hpp"

namespace anabranch::cuda {

void CudaBackend::fail(CUresult status, const char* what) {
  DriverError error = driver_error(status, what);
  if (!is_sticky(status)) throw DriverError(std::move(error));
  const std::vector<Ref<Stream>> living = held_streams();  // let go outside the lock, since that may ask for failures
  std::lock_guard lock(failure_mutex_);
  if (!failed_.load(std::memory_order_acquire)) {
    std::string kernels;
    for (const Ref<Stream>& stream : living) {
      Ref<Kernel> kernel = static_cast<CudaStream&>(*stream).take_kernel();
      if (!kernel) continue;
      kernels += (kernels.empty() ? "" : ", ") + ("'" + kernel->name + "'");
      last_kernels_.push_back(std::move(kernel));
    }
    std::string message = std::string(error.what()) + "; " + alias() + " runs nothing any more in this process";
    if (!kernels.empty()) message += "; the last kernels launched there: " + kernels;
    failure_ = make_ref<Failure>(DriverError(error.code(), error.name(), message));
    failed_.store(true, std::memory_order_release);
    service_.fail();
  }
  throw AsyncError(failure_);
}

void CudaBackend::stop() noexcept {
  service_.stop(std::chrono::seconds(5));
  stopped_ = true;
  // A question takes microseconds, unless the driver hangs.
  const auto most = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (asking_ != 0 && std::chrono::steady_clock::now() < most) std::this_thread::yield();
}

// The driver ends with the process, and then must not be asked any more: a thread that waits until then waits for good.
CudaBackend::Asking::Asking(CudaBackend& device) noexcept : device_(device) {
  ++device_.asking_;
  if (!device_.stopped_) return;
  --device_.asking_;
  while (true) pause();
}

}  // namespace anabranch::cuda
