#include "waiter_list.hpp"

#include <algorithm>

namespace anabranch {

void WaiterList::add(Waiter& waiter, Point point) noexcept {
  waiter.next_ = nullptr;
  waiter.point_ = point;
  (last_ ? last_->next_ : first_) = &waiter;
  last_ = &waiter;
  lowest_ = std::min(lowest_, point);
}

bool WaiterList::remove(Waiter& waiter) noexcept {
  bool found = false;
  Waiter* rest = first_;
  first_ = last_ = nullptr;
  lowest_ = none;
  while (rest) {
    Waiter* other = rest;
    rest = rest->next_;
    if (other == &waiter) {
      found = true;
    } else {
      add(*other, other->point_);
    }
  }
  return found;
}

Waiter* WaiterList::take(Point reached) noexcept {
  if (reached < lowest_) return nullptr;
  Waiter* taken = nullptr;
  Waiter** taken_end = &taken;
  Waiter* rest = first_;
  first_ = last_ = nullptr;
  lowest_ = none;
  while (rest) {
    Waiter* waiter = rest;
    rest = rest->next_;
    if (waiter->point_ <= reached) {
      waiter->next_ = nullptr;
      *taken_end = waiter;
      taken_end = &waiter->next_;
    } else {
      add(*waiter, waiter->point_);
    }
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
