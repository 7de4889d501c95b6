#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "anabranch/stream/stream.hpp"

namespace anabranch::cuda {

class CudaStream;
class DeferredQueue;
class LegacyPlace;

// The order between the legacy stream and the blocking streams of a device. The driver keeps it, in the order in which
// it gets their work. It cannot see work that streams hold, so this adds the order for that. Lock order: a stream's
// mutex, then this one.
struct LegacyOrder {
  std::atomic<int> legacy_held{0};
  std::atomic<int> blocking_held{0};
  std::mutex mutex;
  std::vector<LegacyPlace*> held;  // of the blocking streams that hold work
  CudaStream* legacy = nullptr;
};

// A stream's place in that order. Non-blocking streams have none.
class LegacyPlace {
 public:
  LegacyPlace(LegacyOrder& order, CudaStream& stream) noexcept : order_(order), stream_(stream) {}
  void open(StreamRole role, bool non_blocking) noexcept;

  bool none() const noexcept { return side_ == Side::none; }
  bool is_legacy() const noexcept { return side_ == Side::legacy; }
  // Whether nothing is held on the other side, which the stream's next operation would come after.
  bool clear() const noexcept { return other_held_->load(std::memory_order_acquire) == 0; }

  // Called when the stream begins to hold, and when it no longer does. A stream that has failed does not leave, so that
  // streams in order with it get its failure.
  void enter();
  void leave() noexcept;
  // Adds waits for what the other side holds. Requires the stream's mutex.
  void add_waits(DeferredQueue& queue);

  // The newest point of the legacy stream.
  Point legacy_end() const noexcept;
  // That point when the stream last recorded an event for an operation that is nothing to the driver.
  Point marked() const noexcept { return marked_.load(std::memory_order_acquire); }
  void note_marked(Point legacy_end) noexcept { marked_.store(legacy_end, std::memory_order_release); }

 private:
  enum class Side { none, legacy, blocking };

  LegacyOrder& order_;
  CudaStream& stream_;
  Side side_ = Side::none;
  const std::atomic<int>* other_held_ = nullptr;
  std::atomic<Point> marked_{0};
  // Guarded by the order's mutex.
  Point of_legacy_ = 0;   // of the legacy stream: the point that this blocking stream already waits for
  Point for_legacy_ = 0;  // of this blocking stream: the point that the legacy stream already waits for
  bool is_held_ = false;  // listed there
};

}  // namespace anabranch::cuda
