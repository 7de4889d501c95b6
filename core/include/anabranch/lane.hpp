#pragma once

#include <cstdint>

#include "anabranch/clock.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/ref.hpp"

namespace anabranch {

// What a lane goes by in clocks. Not given to another one while anybody remembers a moment of it; who takes it over
// counts on from where it ended, so that what clocks know of the earlier lane is not mistaken for knowledge of the
// later.
class LaneNumber final : public RefCounted {
 public:
  static Ref<LaneNumber> take();
  ~LaneNumber() override;

  const std::uint32_t value;
  const Point first;  // the count of the lane's beginning
  Point last;         // and of its end, once it has ended

 private:
  LaneNumber(std::uint32_t value, Point first) : value(value), first(first), last(first) {}
};

// An operation of a lane, to be remembered.
struct Moment {
  Ref<LaneNumber> lane;
  Point count;
};

// Everything up to a moment of a lane: what it knew then, and its own operations.
struct Past {
  Clock clock = {};
  std::uint32_t lane = 0;
  Point count = 0;
};

// Operations that come one after the other: those of a stream, or what a host task does itself. It knows what its next
// operation comes after, which is what order is found out from; it makes no order itself. Safe from any thread.
//
// What makes order, and what is to be called for it:
//   a task enqueues an operation             stream.follow(task.past())
//   a stream waits for another, or an event  stream.follow(other.past()), that of the record for an event
//   a task finds a stream or event complete  task.follow(stream.past()), likewise
//   a task begins another                    other.follow(task.past())
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // A new operation.
  Moment advance();
  // Everything by now.
  Past past() const;
  // The next operation comes after all of that.
  void follow(const Past& past);
  // Whether the next operation is known to come after that one.
  bool follows(const Moment& moment) const;
  // What was done and known up to here is another lane's: whose record this is now begins anew.
  void restart();

 private:
  mutable SpinLock lock_;
  Ref<LaneNumber> number_ = LaneNumber::take();
  Point count_ = number_->first;
  Clock clock_;
};

}  // namespace anabranch
