#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/lock.hpp"
#include "driver.hpp"

namespace anabranch::cuda {

class CudaBackend;
class EventPool;

// An event of the driver's, recorded at most once as long as anybody else holds this.
class CudaMarker final : public Marker {
 public:
  CudaMarker(EventPool& pool, CUevent event, unsigned flags) : event(event), flags(flags), pool_(pool) {}

  // Who has it may record the event past us.
  std::uintptr_t handle() const noexcept override {
    given_out_.store(true, std::memory_order_release);
    return reinterpret_cast<std::uintptr_t>(event);
  }

  // Whether the driver has its record; not while the stream that it was put into has not come to hand it on.
  bool recorded() const noexcept { return state_.load(std::memory_order_acquire) != State::empty; }
  // Whether that was found complete, which it stays, as long as nobody else can record the event.
  bool over() const noexcept {
    return state_.load(std::memory_order_acquire) == State::over && !given_out_.load(std::memory_order_acquire);
  }
  // What became of it: the record is the driver's, is still to come, or was found complete.
  void note_recorded() noexcept { state_.store(State::recorded, std::memory_order_release); }
  void note_empty() noexcept { state_.store(State::empty, std::memory_order_release); }
  void note_over() noexcept { state_.store(State::over, std::memory_order_release); }

  const CUevent event;
  const unsigned flags;  // CU_EVENT_…

 private:
  friend class EventPool;
  enum class State : std::uint8_t { empty, recorded, over };
  void dispose() noexcept override;

  std::atomic<State> state_{State::empty};
  mutable std::atomic<bool> given_out_{false};
  EventPool& pool_;
};

// The events of a device that are not in use: making one takes the driver long, and from several threads longer. Lives
// until the process ends.
class EventPool {
 public:
  explicit EventPool(CudaBackend& device) : device_(device) {}

  // At the device's first use, with its context current. Throws DriverError.
  void open();
  // Whether the driver finds the context of a record or a wait by the stream that it is given, so that none need be
  // current, which costs a call to find out. Driver 580 does.
  bool finds_context() const noexcept { return finds_context_; }
  // An event not recorded. The device's context must be current. Throws DriverError, AsyncError.
  Ref<CudaMarker> take(unsigned flags = CU_EVENT_DISABLE_TIMING);

 private:
  friend class CudaMarker;
  void give(CudaMarker& marker) noexcept;
  std::vector<CudaMarker*>& idle(unsigned flags) noexcept { return flags == CU_EVENT_DEFAULT ? timing_ : plain_; }

  CudaBackend& device_;
  bool finds_context_ = false;
  SpinLock lock_;
  std::vector<CudaMarker*> plain_;
  std::vector<CudaMarker*> timing_;
};

// The driver's flags for an event of these options.
unsigned event_flags(const EventOptions& options) noexcept;

}  // namespace anabranch::cuda
