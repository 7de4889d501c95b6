#include "event.hpp"

#include <mutex>
#include <thread>

#include "backend.hpp"

namespace anabranch::cuda {

void EventPool::open() {
  if (under_sanitizer()) return;
  const Ref<CudaMarker> marker = take(CU_EVENT_DISABLE_TIMING);
  CUstream stream = nullptr;
  device_.check(driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
  // A thread begins with no context, and what is current on this one is not to be touched.
  std::thread([&] {
    finds_context_ = driver->cuEventRecord(marker->event, stream) == CUDA_SUCCESS &&
                     driver->cuStreamWaitEvent(stream, marker->event, 0) == CUDA_SUCCESS;
  }).join();
  driver->cuStreamDestroy(stream);
}

Ref<CudaMarker> EventPool::take(unsigned flags) {
  if (flags == CU_EVENT_DISABLE_TIMING || flags == CU_EVENT_DEFAULT) {
    std::lock_guard guard(lock_);
    auto& free = idle(flags);
    if (!free.empty()) {
      CudaMarker* marker = free.back();
      free.pop_back();
      marker->revive();
      return Ref<CudaMarker>::take(marker);
    }
  }
  CUevent event = nullptr;
  device_.check(driver->cuEventCreate(&event, flags), "creating an event");
  return make_ref<CudaMarker>(*this, event, flags);
}

// Recording an event again does not disturb the waits for its last record, so it may go back while they are under way.
void EventPool::give(CudaMarker& marker) noexcept {
  if (marker.flags == CU_EVENT_DISABLE_TIMING || marker.flags == CU_EVENT_DEFAULT) {
    marker.note_empty();
    marker.given_out_.store(false, std::memory_order_relaxed);
    std::lock_guard guard(lock_);
    idle(marker.flags).push_back(&marker);
  } else {
    const ContextScope scope(device_.context());
    driver->cuEventDestroy(marker.event);
    delete &marker;
  }
}

// Any thread, also under a stream's mutex, whose probes hold markers. The pool's spin lock is a leaf; an event of
// unusual flags is destroyed, for which the driver does not wait.
void CudaMarker::dispose() noexcept { pool_.give(*this); }

unsigned event_flags(const EventOptions& options) noexcept {
  unsigned flags = options.timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (options.blocking) flags |= CU_EVENT_BLOCKING_SYNC;
  if (options.interprocess) flags |= CU_EVENT_INTERPROCESS;
  return flags;
}

}  // namespace anabranch::cuda
