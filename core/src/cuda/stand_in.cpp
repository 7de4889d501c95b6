#include "stand_in.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "anabranch/runtime.hpp"
#include "backend.hpp"

namespace anabranch::cuda {

bool StandIn::own_thread() const noexcept { return owner_ == 0 || owner_ == thread_serial(); }

CUstream StandIn::native(CudaBackend& device) {
  if (!stream_) stream_ = device.open_blocking();
  const CUstream native = stream_->native();
  if (handover_) {
    driver->cuStreamWaitEvent(native, handover_->event, 0);
    handover_.reset();
  }
  return native;
}

bool StandIn::end() noexcept {
  handover_.reset();
  if (!stream_) return false;
  try {
    handover_ = stream_->record_end();
  } catch (const Error&) {
    return false;  // the device has failed, so no order is left to keep
  }
  return true;
}

void StandIn::rejoin(CudaBackend& device, CUstream owner) {
  const ContextScope scope(device.context());
  device.check(driver->cuStreamWaitEvent(owner, handover_->event, 0), "waiting for an event");
  handover_.reset();
}

void StandIn::close() noexcept {
  handover_.reset();
  stream_.reset();
}

// Runs on the thread that ends, after Python has finished with it. No lock is held, nor the interpreter lock, so it may
// block.
OwnStreams::~OwnStreams() {
  // The main thread's streams end with the process, which waits for no kernel.
  if (syscall(SYS_gettid) == getpid() || forked()) return;
  for (const auto& [device, stream] : streams) {
    stream->free_kept();
    const ContextScope scope(device->context());
    driver->cuStreamSynchronize(stream->native());
  }
}

}  // namespace anabranch::cuda
