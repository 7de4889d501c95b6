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

struct Moment;

// Everything up to a moment of a lane: what it knew then, and its own operations.
struct Past {
  Clock clock = {};
  std::uint32_t lane = 0;
  Point count = 0;

  // And everything up to another.
  void add(const Past& other) {
    clock.learn(other.clock);
    if (other.lane != lane) clock.learn(other.lane, other.count);
  }
  // Whether that is in it, or is the lane's own.
  bool covers(const Moment& moment) const noexcept;
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

inline bool Past::covers(const Moment& moment) const noexcept {
  return moment.lane->value == lane || clock.covers(moment.lane->value, moment.count);
}

// Operations that come one after the other: those of a stream, or what a host task does itself. It knows what its next
// operation comes after, which is what order is found out from; it makes no order itself. Safe from any thread.
//
// What makes order, and what is to be called for it:
//   a task enqueues an operation             stream.follow(task)
//   a stream waits for another, or an event  stream.follow(other.past()), that of the record for an event
//   a task finds a stream or event complete  task.follow(stream.settled()), or that of the record
//   a task begins another                    other.follow(task.past())
//   a stream's next operation will come      stream.expect(past)
//   after something, as none has yet
//
// Threads that share a stream are between these calls at the same time. So what makes order is done before it is told
// here, and what an operation comes after is what is known right before it is enqueued, as `look` remembers it: neither
// less, since who waits in a host function leaves out what is known to come after that, nor more.
class Lane {
 public:
  // Which state of a lane somebody has followed last, so that to follow it again costs nothing.
  using Version = std::uint64_t;

  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // A new operation, of a lane that one thread alone advances.
  Moment advance();
  // Before something is enqueued: what the lane knows now, for this thread to name once it is.
  Version look();
  // One that was enqueued after that look. What other threads have told since it does not come after.
  Moment advance(Version learned);
  // The same, into what was the moment of an earlier operation, most often of this lane.
  void advance(Moment& moment, Version learned);
  // What is enqueued from now on comes after all of this.
  Past past() const;
  // What is enqueued by now does.
  Past settled() const;
  // The next operation comes after all of that, as everything does that is found out about the lane from now on.
  void follow(const Past& past) { follow(past.clock, past.lane, past.count); }
  void follow(const Moment& moment) { follow(moment.clock, moment.lane->value, moment.count); }
  // The next operation comes after all of that, but none does yet.
  void expect(const Past& past);
  // Something was enqueued after that look that is no operation of the lane's, but comes after all that one would.
  void settle(Version learned);
  // The next operation comes after all of the other lane by now. `seen` is kept between the calls.
  void follow(const Lane& other, std::atomic<Version>& seen) {
    const Version version = other.version();
    if (version == seen.load(std::memory_order_acquire)) return;
    follow(other.past());
    seen.store(version, std::memory_order_release);
  }
  // Changes with every operation and all that is learned; of no two lanes the same.
  Version version() const noexcept { return version_.load(std::memory_order_acquire); }
  // What was done and known up to here is another lane's: whose record this is now begins anew.
  void restart();

 private:
  // What the next operation comes after, and of that what those that are in come after.
  struct Knowledge {
    Clock clock = {};
    Clock settled = {};  // if more is expected of the next one; else that is `clock`
    bool expecting = false;
  };

  static Version next_version() noexcept;
  void follow(const Clock& clock, std::uint32_t lane, Point count);
  // With the lock.
  void change() noexcept { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void change_clock() noexcept {
    change();
    learned_.store(version_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  bool learn(Clock& clock, const Clock& other, std::uint32_t lane, Point count) const;
  const Clock& known_at(Version learned) const noexcept;
  void settle(const Clock& known);

  mutable SpinLock lock_;
  std::atomic<Version> version_{next_version()};
  Ref<LaneNumber> number_ = LaneNumber::take();
  Point count_ = number_->first;
  Knowledge known_;
  std::atomic<Version> learned_{version_.load(std::memory_order_relaxed)};  // its version when it learned last
};

}  // namespace anabranch
