#pragma once

#include <cstdint>
#include <limits>

#include "anabranch/stream/stream.hpp"

namespace anabranch {

// The waiters of one stream, with the points they wait for. The stream's mutex guards the list.
//
// A pairing heap: a host that runs ahead leaves a waiter for each block that it frees, and the operations of the stream
// are completed one by one.
class WaiterList {
 public:
  static constexpr Point none = std::numeric_limits<Point>::max();

  void add(Waiter& waiter, Point point) noexcept;
  // Removes a waiter, in time proportional to the length of the list. Returns false if it is not in the list.
  bool remove(Waiter& waiter) noexcept;
  // Removes the waiters for points up to `reached` and returns them as a chain, in the order of their points, those of
  // one point in order of arrival; null if there are none.
  Waiter* take(Point reached) noexcept;
  // The smallest point that a waiter waits for, or `none`.
  Point lowest() const noexcept { return root_ ? root_->point_ : none; }
  // Wakes a chain from `take`. A waiter may be destroyed as soon as it is woken.
  static void wake(Waiter* chain, const Ref<Failure>& failure) noexcept;

 private:
  static bool before(const Waiter& one, const Waiter& other) noexcept;
  static Waiter* join(Waiter* one, Waiter* other) noexcept;
  static Waiter* join_all(Waiter* heaps) noexcept;

  Waiter* root_ = nullptr;
  std::uint64_t arrived_ = 0;
};

}  // namespace anabranch
