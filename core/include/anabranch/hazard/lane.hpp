#pragma once

#include <atomic>
#include <cstdint>

#include "anabranch/hazard/clock.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/ref.hpp"

namespace anabranch {

// The number that identifies a lane in clocks. It is not reused while any moment refers to it. The next lane with the
// number continues the count, so that clock entries for the earlier lane never apply to the later one.
class LaneNumber final : public RefCounted {
 public:
  static Ref<LaneNumber> take();
  ~LaneNumber() override;

  const std::uint32_t value;
  const Point first;  // the count at which the lane begins
  Point last;         // the count at which it ended, once it has

 private:
  LaneNumber(std::uint32_t value, Point first) : value(value), first(first), last(first) {}
};

struct Moment;

// Everything up to a moment of a lane: the lane's clock then, and its own operations.
struct Past {
  Clock clock = {};
  std::uint32_t lane = 0;
  Point count = 0;

  // Joins another past.
  void add(const Past& other) {
    clock.join(other.clock);
    if (other.lane != lane) clock.join(other.lane, other.count);
  }
  // Whether the moment is in this past or belongs to the lane itself.
  bool covers(const Moment& moment) const noexcept;
};

// An operation of a lane, with the clock of what it came after.
struct Moment {
  Ref<LaneNumber> lane;  // null: clocks do not cover the operation
  Point count = 0;
  Clock clock = {};

  // Everything up to this operation, which is included.
  Past past() const { return {clock, lane->value, count}; }
  // Whether this operation is known to come after the other one.
  bool follows(const Moment& other) const noexcept {
    return lane == other.lane ? count > other.count : clock.covers(other.lane->value, other.count);
  }
  // Whether both belong to one lane whose clock did not change in between.
  bool alike(const Moment& other) const noexcept { return lane == other.lane && clock.same(other.clock); }
};

inline bool Past::covers(const Moment& moment) const noexcept {
  return moment.lane->value == lane || clock.covers(moment.lane->value, moment.count);
}

// Operations that run one after another: those of a stream, or a host task's own steps. A lane tracks what its next
// operation comes after. It makes no order itself. Any thread may call any member.
//
// Each event that makes order has a call that records it:
//   a task enqueues an operation             stream.follow(task)
//   a stream waits for another, or an event  stream.follow(other.past()), that of the record for an event
//   a task finds a stream or event completed task.follow(stream.settled()), or that of the record
//   a task starts another                    other.follow(task.past())
//   only a stream's next operation will      stream.expect(past)
//   come after something
//
// Several threads may be between these calls for one stream. Make the order first and record it here afterwards. An
// operation's moment uses the clock from just before it was enqueued, which `snapshot` identifies. A later clock could
// claim too much. An earlier one claims too little, and a host function uses its clock to skip work that comes after
// it.
class Lane {
 public:
  // Identifies a state of a lane, so that following the same state again is one comparison.
  using Version = std::uint64_t;

  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // Adds an operation to a lane that only one thread advances.
  Moment advance();
  // Identifies the current clock. Call it just before enqueueing and pass the result to `advance` or `settle`.
  Version snapshot();
  // Adds an operation that was enqueued after that `snapshot`. Its moment leaves out what other threads recorded since.
  Moment advance(Version snapshot);
  // The same, but overwrites an earlier moment, usually of this lane, and reuses its references.
  void advance(Moment& moment, Version snapshot);
  // What the next operation comes after.
  Past past() const;
  // What the operations enqueued so far come after.
  Past settled() const;
  // The next operation comes after `past`. Observers of the lane inherit that at once.
  void follow(const Past& past) { follow(past.clock, past.lane, past.count); }
  void follow(const Moment& moment) { follow(moment.clock, moment.lane->value, moment.count); }
  // The next operation will come after `past`. Observers inherit that only once something is enqueued.
  void expect(const Past& past);
  // Something was enqueued after that `snapshot`. It is no operation of the lane, but it comes after all expected
  // order.
  void settle(Version snapshot);
  // The next operation comes after everything in the other lane. The caller keeps `seen` between calls as a cache.
  void follow(const Lane& other, std::atomic<Version>& seen) {
    const Version version = other.version();
    if (version == seen.load(std::memory_order_acquire)) return;
    follow(other.past());
    seen.store(version, std::memory_order_release);
  }
  // Changes with each operation and each clock update. Versions of different lanes never collide.
  Version version() const noexcept { return version_.load(std::memory_order_acquire); }
  // Starts a new lane in this object, for a pooled stream that is used again.
  void restart();

 private:
  // What the next operation comes after, and the part of it that enqueued operations come after.
  struct Knowledge {
    Clock clock = {};
    Clock settled = {};  // used while `expecting`; else `clock` holds for both
    bool expecting = false;
  };

  static Version next_version() noexcept;
  void follow(const Clock& clock, std::uint32_t lane, Point count);
  // Requires the lock.
  void change() noexcept { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void change_clock() noexcept {
    change();
    clock_version_.store(version_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  bool join(Clock& clock, const Clock& other, std::uint32_t lane, Point count) const;
  const Clock& known_at(Version snapshot) const noexcept;
  void settle(const Clock& known);

  mutable SpinLock lock_;
  std::atomic<Version> version_{next_version()};
  Ref<LaneNumber> number_ = LaneNumber::take();
  Point count_ = number_->first;
  Knowledge known_;
  std::atomic<Version> clock_version_{
      version_.load(std::memory_order_relaxed)};  // the version of the last clock update
};

}  // namespace anabranch
