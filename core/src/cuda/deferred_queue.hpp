#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "operation.hpp"

namespace anabranch::cuda {

// The operations that a stream holds, in order, and the streams that wait until the driver has them. Requires the
// stream's mutex, except for `submitted`.
class DeferredQueue {
 public:
  // A stream that becomes ready once the driver has everything up to the point.
  struct Follower {
    Point point;
    Ref<CudaStream> stream;
  };

  // The driver has everything up to this point, as long as the stream holds.
  Point submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
  // Called when the stream begins to hold: the driver has everything up to `submitted`.
  void begin(Point submitted) noexcept { submitted_.store(submitted); }

  bool empty() const noexcept { return operations_.empty(); }
  Operation& first() noexcept { return *operations_.front(); }
  // `point` 0: a wait added for the legacy stream's order.
  void push(std::unique_ptr<Operation> operation, Point point);
  std::unique_ptr<Operation> pop() noexcept;
  // Puts the point of an operation that went to the driver meanwhile between those of held operations.
  void insert_direct(Point point);

  // Notes that the driver has everything up to the point. Returns the followers that waited for it, to be woken without
  // the lock.
  [[nodiscard]] std::vector<Follower> submit_up_to(Point point) noexcept;
  static void wake(const std::vector<Follower>& ready) noexcept;
  void add_follower(Point point, CudaStream& stream);

 private:
  std::deque<std::unique_ptr<Operation>> operations_;
  std::atomic<Point> submitted_{0};
  std::vector<Follower> followers_;
};

}  // namespace anabranch::cuda
