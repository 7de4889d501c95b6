#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/history.hpp"
#include "anabranch/memory.hpp"

namespace anabranch {

// What becomes of order that is missing between accesses to the same bytes.
enum class HazardMode : std::uint8_t {
  automatic,  // it is added
  check,      // it is reported
  off,        // nothing: who enqueues sees to it, and what is enqueued is not kept track of
};

// Two accesses with no order between them.
struct Race {
  Use first;
  std::size_t second = 0;  // which of the operation's touches
};

// A thread, an asyncio task, or one call of a host function, as what enqueues and waits.
struct HostTask final : RefCounted {
  Lane lane;
  Moment call;  // the operation that it is, of a host function
  // The accesses that it has begun and not ended: what it enqueues does not come after them, what else it does itself
  // is none of their business.
  std::vector<Ref<LaneNumber>> open;
  Lane::Version observed = 0;  // the state of a lane that it found to be over last
  Lane::Version before = 0;    // and the one before that

  // Whether that comes after the function, which then cannot wait for it.
  bool precedes(const Use& use) const noexcept;
  bool has_open(const Use& use) const noexcept;
  bool has_observed(Lane::Version version) const noexcept { return version == observed || version == before; }
  // It has found that to be over, which is a lane's of a version; 0: not known of which.
  void observe(const Past& past, Lane::Version version) {
    if (version != 0 && has_observed(version)) return;
    lane.follow(past);
    before = std::exchange(observed, version);
  }
};

// An access of a host task that lasts.
class HostAccess final : public RefCounted {
 public:
  // Begins it, once what it has to come after is over. `kept`: once it has ended, later accesses still test the order
  // after it.
  HostAccess(Ref<HostTask> task, const Touch& touch, Site site, bool kept);
  // An access that is dropped without an end holds up nobody.
  ~HostAccess() override {
    if (number_) storage_->end_host(number_, kept_);
  }
  // Ends it, at the first call.
  void end();

 private:
  Ref<HostTask> task_;
  Ref<Storage> storage_;
  Lane lane_;
  Ref<LaneNumber> number_;
  const bool kept_;
};

// Through which everything goes that touches memory, in this order:
//   begin    what the stream's next operation comes after is brought up to date
//   missing  the accesses that it conflicts with and is not known to come after
//   add      waits for them
// the lane is looked at (`Lane::look`), the operation is enqueued, and
//   note     remembers it
// `off` needs but the last. Who refuses an operation for what is missing finds that out before `begin`, by `coming`:
// what a task may not do, the stream's next operation does not come after.
class Ordering {
 public:
  Ordering(Stream& stream, const Lane& task) : stream_(stream), task_(task) {}

  void begin() {
    stream_.lane().follow(task_, stream_.task_seen_);
    stream_.backend().legacy_lanes().join(stream_);
  }
  // What the stream's next operation would come after if the task put it in, with nobody told. The legacy stream learns
  // of the blocking ones, though, as from whoever looks at it.
  Past coming() const;
  // Nothing at all is missing, found out at the cost of a load for each touch. False: maybe.
  bool clear(std::span<const Touch> touches) const noexcept {
    for (const Touch& touch : touches) {
      if (!touch.storage->only(stream_)) return false;
    }
    return true;
  }
  std::vector<Race> missing(std::span<const Touch> touches) const { return missing(touches, stream_.lane().past()); }
  std::vector<Race> missing(std::span<const Touch> touches, const Past& before) const;
  // Waits for as few of the operations as it takes. The host's are left out: no stream can wait for them.
  void add(const std::vector<Race>& missing, const HostTask& task);
  // `learned`: what that look returned.
  static void note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                   Lane::Version learned);
  // The same at the moment that the operation already has.
  static void note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                   const Moment* made);
  // What is put into the stream from now on starts after everything in another by now, or after a record.
  void wait(Stream& target);
  static void wait(Stream& stream, const Record& record);

 private:
  // A wait for that was enqueued. `version`: of the lane whose past it is; 0: not known. `learned` as for `note`.
  static void follow(Stream& stream, const Past& past, Lane::Version version, Lane::Version learned);

  Stream& stream_;
  const Lane& task_;
};

// Whether some task looks for races, or has: until then nobody asks where anything was done.
bool checks_begun() noexcept;
void begin_checks() noexcept;

// How many waits were added in this process so far.
std::uint64_t added_waits() noexcept;

}  // namespace anabranch
