#pragma once

#include <limits>

#include "anabranch/stream/stream.hpp"

namespace anabranch {

// The waiters of one stream, with the points they wait for. The stream's mutex guards the list.
class WaiterList {
 public:
  static constexpr Point none = std::numeric_limits<Point>::max();

  void add(Waiter& waiter, Point point) noexcept;
  // Removes a waiter. Returns false if it is not in the list.
  bool remove(Waiter& waiter) noexcept;
  // Removes the waiters for points up to `reached` and returns them as a chain, in order of arrival; null if there are
  // none.
  Waiter* take(Point reached) noexcept;
  // The smallest point that a waiter waits for, or `none`.
  Point lowest() const noexcept { return lowest_; }
  // Wakes a chain from `take`. A waiter may be destroyed as soon as it is woken.
  static void wake(Waiter* chain, const Ref<Failure>& failure) noexcept;

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  Point lowest_ = none;
};

}  // namespace anabranch
