#pragma once

#include <limits>

#include "anabranch/stream.hpp"

namespace anabranch {

// The waiters of one stream, by the point they wait for. Not locked: the stream's mutex guards it.
class WaiterList {
 public:
  static constexpr Point none = std::numeric_limits<Point>::max();

  void add(Waiter& waiter, Point point) noexcept;
  // Takes out one; false if it is not in the list.
  bool remove(Waiter& waiter) noexcept;
  // Takes out those whose point is at or before `reached`, as a chain in the order of their arrival; null if there are
  // none.
  Waiter* take(Point reached) noexcept;
  // The smallest point that is waited for, or `none`.
  Point lowest() const noexcept { return lowest_; }
  // Wakes a chain from `take`. A waiter may be gone as soon as it is woken.
  static void wake(Waiter* chain, const Ref<Failure>& failure) noexcept;

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  Point lowest_ = none;
};

}  // namespace anabranch
