#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/hazard/history.hpp"
#include "anabranch/memory/memory.hpp"

namespace anabranch {

// The treatment of missing order between conflicting accesses to the same bytes.
enum class HazardMode : std::uint8_t {
  automatic,  // waits are added
  check,      // a race is reported
  off,        // nothing: the program makes the order, and no moments are tracked
};

// Two accesses with no order between them.
struct Race {
  Use first;
  std::size_t second = 0;    // which of the operation's touches
  bool overwritten = false;  // the second overwrites all that the first accesses
};

// A thread, an asyncio task, or one call of a host function: whatever enqueues and waits.
struct HostTask final : RefCounted {
  Lane lane;
  Moment call;  // the host function's operation; without a lane for other tasks
  // The accesses that the task has begun and not ended. Operations that it enqueues do not come after them; its own
  // other accesses are not tested against them.
  std::vector<Ref<LaneNumber>> open;
  Lane::Version observed = 0;  // the state of a lane that it observed last, as completed
  Lane::Version before = 0;    // the one that it observed before that

  // Whether the use is known to come after the host function, which therefore cannot wait for it.
  bool precedes(const Use& use) const noexcept;
  // Whether the use does, and is not the function's own: neither has to come after the other for what the program says.
  bool ignores(const Use& use) const noexcept;
  bool has_open(const Use& use) const noexcept;
  bool has_observed(Lane::Version version) const noexcept { return version == observed || version == before; }
  // The task has observed that this past of a lane is completed. `version`: the lane's; 0: unknown.
  void observe(const Past& past, Lane::Version version) {
    if (version != 0 && has_observed(version)) return;
    lane.follow(past);
    before = std::exchange(observed, version);
  }
};

// Call these around a host function of the stream, on its thread. Meanwhile `Ordering` remembers where the function
// enqueues: those operations may come after the function, but its later ones come after them.
void begin_function(const Stream& stream) noexcept;
void end_function() noexcept;
// Whether this thread's host function has enqueued the use. Others' uses of a stream between two of the function's
// count as its own.
bool enqueued_by_function(const Use& use) noexcept;

// An access by a host task with a beginning and an end.
class HostAccess final : public RefCounted {
 public:
  // Begins the access. The uses that it must come after are completed. `kept`: once it has ended, later accesses still
  // test the order after it.
  HostAccess(Ref<HostTask> task, const Touch& touch, Site site, bool kept);
  // An access that is dropped without an end ends, too.
  ~HostAccess() override {
    if (number_) storage_->accesses().end_host(number_, kept_);
  }
  // Ends the access; later calls have no effect.
  void end();

 private:
  Ref<HostTask> task_;
  Ref<Storage> storage_;
  Lane lane_;
  Ref<LaneNumber> number_;
  const bool kept_;
};

// The steps of a `Submission`, in this order:
//   begin    updates the stream's clock
//   missing  finds the conflicting accesses that the operation is not known to come after
//   add      enqueues waits for them
// then the caller takes a `Lane::snapshot`, enqueues the operation, and
//   note     records its accesses.
// `off` needs only `note`. To refuse an operation, test against `coming` before `begin`: the clock must not include
// order that only a refused operation would have made.
class Ordering {
 public:
  Ordering(Stream& stream, const Lane& task) : stream_(stream), task_(task) {}

  void begin() {
    stream_.lane().follow(task_, stream_.task_seen_);
    stream_.backend().legacy_lanes().join(stream_);
  }
  // What the stream's next operation would come after if the task enqueued it. Updates no clock, except that a legacy
  // stream's clock joins those of its blocking streams.
  Past coming() const;
  // Whether no order is missing, by one load per touch. False means unknown.
  bool clear(std::span<const Touch> touches) const noexcept {
    for (const Touch& touch : touches) {
      if (!touch.storage->accesses().only(stream_)) return false;
    }
    return true;
  }
  std::vector<Race> missing(std::span<const Touch> touches) const { return missing(touches, stream_.lane().past()); }
  std::vector<Race> missing(std::span<const Touch> touches, const Past& before) const;
  // Adds the fewest waits that make the order. Leaves out accesses by the host: no stream can wait for them.
  void add(const std::vector<Race>& missing, const HostTask& task);
  // `snapshot`: of the stream's lane, just before the operation was enqueued.
  static void note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                   Lane::Version snapshot);
  // The same for an operation that already has a moment.
  static void note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                   const Moment* made);
  // Later operations of the stream start after everything enqueued in `target` so far, or after the record.
  void wait(Stream& target);
  static void wait(Stream& stream, const Record& record);

 private:
  // Updates the clock once a wait was enqueued. `version`: of the lane of `past`; 0: unknown. `snapshot` as for `note`.
  static void follow(Stream& stream, const Past& past, Lane::Version version, Lane::Version snapshot);

  Stream& stream_;
  const Lane& task_;
};

// Whether any task has ever checked for races. Until then operations need no sites.
bool checks_begun() noexcept;
void begin_checks() noexcept;

// The number of waits that hazards have added in this process.
std::uint64_t added_waits() noexcept;

}  // namespace anabranch
