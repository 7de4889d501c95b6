// Failure of a device by a fault that its context does not survive.
#include "backend.hpp"

namespace anabranch::cuda {

void CudaBackend::fail(CUresult status, const char* what) {
  DriverError error = driver_error(status, what);
  if (!is_sticky(status)) throw DriverError(std::move(error));
  const std::vector<Ref<Stream>> living = held_streams();  // released outside the lock, because this may call `fail`
  std::lock_guard lock(failure_mutex_);
  if (!failed_.load(std::memory_order_acquire)) {
    std::string kernels;
    for (const Ref<Stream>& stream : living) {
      Ref<Kernel> kernel = static_cast<CudaStream&>(*stream).take_kernel();
      if (!kernel) continue;
      kernels += (kernels.empty() ? "" : ", ") + ("'" + kernel->name + "'");
      last_kernels_.push_back(std::move(kernel));
    }
    std::string message = std::string(error.what()) + "; " + alias() + " cannot be used any more in this process";
    if (!kernels.empty()) message += "; the last kernels launched there: " + kernels;
    failure_ = make_ref<Failure>(DriverError(error.code(), error.name(), message));
    failed_.store(true, std::memory_order_release);
    poller_.fail();
  }
  throw AsyncError(failure_);
}

}  // namespace anabranch::cuda
