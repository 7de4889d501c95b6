#include "waiter_list.hpp"

#include <utility>

namespace anabranch {

bool WaiterList::before(const Waiter& one, const Waiter& other) noexcept {
  return one.point_ != other.point_ ? one.point_ < other.point_ : one.arrival_ < other.arrival_;
}

// Makes one heap of two, the second of which may be null.
Waiter* WaiterList::join(Waiter* one, Waiter* other) noexcept {
  if (!other) return one;
  if (before(*other, *one)) std::swap(one, other);
  other->next_ = std::exchange(one->later_, other);
  return one;
}

// Makes one heap of a chain of them, in pairs: that is what keeps the cost of a removal low in the long run.
Waiter* WaiterList::join_all(Waiter* heaps) noexcept {
  Waiter* pairs = nullptr;
  while (heaps) {
    Waiter* const one = heaps;
    Waiter* const other = std::exchange(one->next_, nullptr);
    heaps = other ? std::exchange(other->next_, nullptr) : nullptr;
    Waiter* const pair = join(one, other);
    pair->next_ = std::exchange(pairs, pair);
  }
  Waiter* all = nullptr;
  while (pairs) {
    Waiter* const pair = pairs;
    pairs = std::exchange(pair->next_, nullptr);
    all = join(pair, all);
  }
  return all;
}

void WaiterList::add(Waiter& waiter, Point point) noexcept {
  waiter.next_ = waiter.later_ = nullptr;
  waiter.point_ = point;
  waiter.arrival_ = arrived_++;
  root_ = join(&waiter, root_);
}

bool WaiterList::remove(Waiter& waiter) noexcept {
  bool found = false;
  Waiter* rest = std::exchange(root_, nullptr);
  while (rest) {
    Waiter* const other = rest;
    rest = std::exchange(other->next_, nullptr);
    // What was below it comes first, so that each chain is walked once.
    if (Waiter* last = other->later_) {
      while (last->next_) last = last->next_;
      last->next_ = rest;
      rest = std::exchange(other->later_, nullptr);
    }
    if (other == &waiter) {
      found = true;
    } else {
      root_ = join(other, root_);
    }
  }
  return found;
}

Waiter* WaiterList::take(Point reached) noexcept {
  Waiter* taken = nullptr;
  Waiter** end = &taken;
  while (lowest() <= reached) {
    Waiter* const waiter = root_;
    root_ = join_all(std::exchange(waiter->later_, nullptr));
    *end = waiter;
    end = &waiter->next_;
  }
  return taken;
}

void WaiterList::wake(Waiter* chain, const Ref<Failure>& failure) noexcept {
  while (chain) {
    Waiter* waiter = chain;
    chain = chain->next_;
    waiter->wake(failure);
  }
}

}  // namespace anabranch
