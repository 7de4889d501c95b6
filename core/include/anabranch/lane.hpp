#pragma once

#include <atomic>
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

// Everything up to a moment of a lane: what it knew then, and its own operations.
struct Past {
  Clock clock = {};
  std::uint32_t lane = 0;
  Point count = 0;
};

// An operation of a lane, to be remembered, with what it came after.
struct Moment {
  Ref<LaneNumber> lane;  // null: clocks know nothing of the operation
  Point count = 0;
  Clock clock = {};

  // Everything up to and with it.
  Past past() const { return {clock, lane->value, count}; }
  // Whether it is known to come after the other one.
  bool follows(const Moment& other) const noexcept {
    return lane == other.lane ? count > other.count : clock.covers(other.lane->value, other.count);
  }
  // Whether the two are of one lane, which has learned nothing in between.
  bool alike(const Moment& other) const noexcept { return lane == other.lane && clock.same(other.clock); }
};

// Operations that come one after the other: those of a stream, or what a host task does itself. It knows what its next
// operation comes after, which is what order is found out from; it makes no order itself. Safe from any thread.
//
// What makes order, and what is to be called for it:
//   a task enqueues an operation             stream.follow(task)
//   a stream waits for another, or an event  stream.follow(other.past()), that of the record for an event
//   a task finds a stream or event complete  task.follow(stream.past()), likewise
//   a task begins another                    other.follow(task.past())
class Lane {
 public:
  // Which state of a lane somebody has followed last, so that to follow it again costs nothing.
  using Version = std::uint64_t;

  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // A new operation.
  Moment advance();
  // The same, into what was the moment of an earlier operation, most often of this lane.
  void advance(Moment& moment);
  // Everything by now.
  Past past() const;
  // The next operation comes after all of that.
  void follow(const Past& past) { follow(past.clock, past.lane, past.count); }
  void follow(const Moment& moment) { follow(moment.clock, moment.lane->value, moment.count); }
  // The next operation comes after all of the other lane by now. `seen` is kept between the calls.
  void follow(const Lane& other, std::atomic<Version>& seen) {
    const Version version = other.version();
    if (version == seen.load(std::memory_order_acquire)) return;
    follow(other.past());
    seen.store(version, std::memory_order_release);
  }
  // Changes with every operation and all that is learned; of no two lanes the same.
  Version version() const noexcept { return version_.load(std::memory_order_acquire); }
  // Whether the next operation is known to come after that one.
  bool follows(const Moment& moment) const;
  // The next operation comes after no more than that, which was known before: what it was for did not come about.
  void unlearn(Clock before);
  // What was done and known up to here is another lane's: whose record this is now begins anew.
  void restart();

 private:
  static Version next_version() noexcept;
  void follow(const Clock& clock, std::uint32_t lane, Point count);
  // With the lock.
  void change() noexcept { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  mutable SpinLock lock_;
  std::atomic<Version> version_{next_version()};
  Ref<LaneNumber> number_ = LaneNumber::take();
  Point count_ = number_->first;
  Clock clock_;
};

}  // namespace anabranch
