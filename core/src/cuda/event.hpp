#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "anabranch/lock.hpp"
#include "anabranch/stream/event.hpp"
#include "driver.hpp"

namespace anabranch::cuda {

class CudaBackend;
class EventPool;

// An event of the driver, recorded at most once while anything else refers to this marker.
class CudaMarker final : public Marker {
 public:
  CudaMarker(EventPool& pool, CUevent event, unsigned flags) : event(event), flags(flags), pool_(pool) {}

  // Whoever has the handle may record the event without our knowledge.
  std::uintptr_t handle() const noexcept override {
    given_out_.store(true, std::memory_order_release);
    return reinterpret_cast<std::uintptr_t>(event);
  }

  // Whether the driver has the record. It does not while the record's stream holds it.
  bool recorded() const noexcept { return state_.load(std::memory_order_acquire) != State::empty; }
  // Whether the event was found completed. That stays true as long as nobody else can record it.
  bool over() const noexcept {
    return state_.load(std::memory_order_acquire) == State::over && !given_out_.load(std::memory_order_acquire);
  }
  // Set the state: the driver has the record, will get it later, or found it completed.
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

// The unused events of a device. The driver is slow to create events, and slower from several threads. Lives until the
// process ends.
class EventPool {
 public:
  explicit EventPool(CudaBackend& device) : device_(device) {}

  // Called at the device's first use, with its context current. Throws DriverError.
  void open();
  // Whether the driver takes the context for a record or a wait from the stream, so that none needs to be current;
  // checking that costs a call. Driver 580 does.
  bool finds_context() const noexcept { return finds_context_; }
  // An unrecorded event. Requires that the device's context is current. Throws DriverError, AsyncError.
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

// The driver's flags for an event with these options.
unsigned event_flags(const EventOptions& options) noexcept;

}  // namespace anabranch::cuda
