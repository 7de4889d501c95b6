#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/capture.hpp"
#include "anabranch/hazard.hpp"
#include "anabranch/loan.hpp"

// The core's hazards as the Cython modules call them.
namespace anabranch::python {

// The moment of an operation that runs Python code, maybe before whoever enqueues it has come to give it one: that is
// done once it is in its stream, since the moments of a stream count in the order of its operations.
class ComingMoment {
 public:
  void set(Moment moment) noexcept {
    moment_ = std::move(moment);
    known_.store(true, std::memory_order_release);
  }
  // Waits for it, no longer than a call of the driver takes. Without the interpreter lock.
  const Moment& get() const noexcept {
    while (!known_.load(std::memory_order_acquire)) sched_yield();
    return moment_;
  }

 private:
  std::atomic<bool> known_{false};
  Moment moment_;
};

// Keeps what touches are of while Python code runs, which may close the arrays.
class KeptMemory {
 public:
  KeptMemory() = default;
  KeptMemory(const Touch* touches, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Ref<Storage> storage = Ref<Storage>::share(touches[i].storage);
      if (std::find(storages_.begin(), storages_.end(), storage) == storages_.end())
        storages_.push_back(std::move(storage));
    }
  }
  // Whether nobody else keeps one of them any more.
  bool given_up() const noexcept {
    return std::any_of(storages_.begin(), storages_.end(), [](const auto& storage) { return storage->unique(); });
  }

 private:
  std::vector<Ref<Storage>> storages_;
};

// Brings the stream's lane up to date. Whether no order is missing for sure.
inline bool is_ordered(Stream& stream, const HostTask& task, const Touch* touches, std::size_t count) {
  Ordering ordering(stream, task.lane);
  ordering.begin();
  return ordering.clear({touches, count});
}

// The same, but a stream whose operation may lack order is not told of it.
inline bool passes(Stream& stream, const HostTask& task, const Touch* touches, std::size_t count) {
  Ordering ordering(stream, task.lane);
  if (!ordering.clear({touches, count})) return false;
  ordering.begin();
  return true;
}

// The order that an operation would lack, with the stream not told of it yet.
inline std::vector<Race> coming_races(Stream& stream, const HostTask& task, const Touch* touches, std::size_t count) {
  const Ordering ordering(stream, task.lane);
  return ordering.missing({touches, count}, ordering.coming());
}
inline void begin(Stream& stream, const HostTask& task) { Ordering(stream, task.lane).begin(); }

inline std::vector<Race> missing_order(Stream& stream, const HostTask& task, const Touch* touches, std::size_t count) {
  return Ordering(stream, task.lane).missing({touches, count});
}

// What others may have done by now with memory that is lent to them, on other streams than this one.
inline void note_loans(const Touch* touches, std::size_t count, const Stream* stream) {
  for (std::size_t i = 0; i < count; ++i) Loan::note(*touches[i].storage, stream);
}

inline void add_order(Stream& stream, const HostTask& task, const std::vector<Race>& missing) {
  Ordering(stream, task.lane).add(missing, task);
}

// To be called before something is put in. What it returns is handed to what notes it.
inline Lane::Version look_before(Stream& stream) { return stream.lane().look(); }

inline void note_touches(Stream& stream, Point point, const Touch* touches, std::size_t count, int mode, Site site,
                         Lane::Version learned) {
  Ordering::note(stream, point, {touches, count}, static_cast<HazardMode>(mode), site, learned);
}

// Of an operation that already has its moment; none where order is not kept track of.
inline void note_touches_at(Stream& stream, Point point, const Touch* touches, std::size_t count, int mode, Site site,
                            const Moment& when) {
  const bool tracked = static_cast<bool>(when.lane);
  Ordering::note(stream, point, {touches, count}, tracked ? static_cast<HazardMode>(mode) : HazardMode::off, site,
                 tracked ? &when : nullptr);
}

// Within a capture, what stands for the memory.
// Good until this thread asks again.
inline const std::vector<Touch>& shadows_of(Capture& capture, const Touch* touches, std::size_t count) {
  thread_local std::vector<Touch> shadows;
  capture.shadow({touches, count}, shadows);
  return shadows;
}
inline void note_captured(Stream& stream, Point point, const Touch* touches, std::size_t count, int mode, Site site,
                          Lane::Version learned) {
  const std::vector<Touch>& shadows = shadows_of(*stream.capture(), touches, count);
  stream.capture()->note(stream, {touches, count}, point);
  Ordering::note(stream, point, shadows, static_cast<HazardMode>(mode), site, learned);
}

// What has to be over before the host makes an access, and what of that `task` does not know to be.
inline std::vector<Use> uses_of(const Touch& touch) {
  note_loans(&touch, 1, nullptr);
  return touch.storage->uses(touch.access, touch.footprint());
}
// The same for a task, which cannot wait for what comes after the host function that it is.
inline std::vector<Use> uses_before(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = uses_of(touch);
  std::erase_if(found, [&task](const Use& use) { return task.precedes(use); });
  return found;
}
inline std::vector<Use> host_conflicts(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = touch.storage->conflicts(task.lane.past(), nullptr, touch.access, touch.footprint());
  std::erase_if(found, [&task](const Use& use) {
    return use.untold || !use.when.lane || task.precedes(use) || task.has_open(use);
  });
  return found;
}
// The same where a storage is about to go, but for bytes that others have, whose owner keeps the memory.
inline std::vector<Use> return_conflicts(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = host_conflicts(task, touch);
  std::erase_if(found, [&touch](const Use& use) { return touch.storage->kept_by_neighbours(use.where.bytes()); });
  return found;
}
inline void note_host(HostTask& task, const Touch& touch, Site site) {
  touch.storage->note_host(task.lane.advance(), touch.access, touch.footprint(), site);
}

// Everything that comes before an operation that is put into the stream now.
inline Past past_of(Stream& stream) {
  stream.backend().legacy_lanes().join(stream);
  return stream.lane().past();
}
// Everything that is over once the stream is: a blocking stream that is empty says nothing of the legacy stream, which
// itself sees what blocking streams have to do.
inline Past past_within(Stream& stream) {
  if (stream.role() != StreamRole::legacy) return stream.lane().settled();
  stream.backend().legacy_lanes().join(stream);
  return stream.lane().past();
}
// The same, if the task has not observed it; `version` is 0 else.
struct Sight {
  Lane::Version version = 0;
  Past past = {};
};
inline Sight look(Stream& stream, const HostTask& task) {
  if (stream.role() == StreamRole::legacy) stream.backend().legacy_lanes().join(stream);
  const Lane::Version version = stream.lane().version();
  if (task.has_observed(version)) return {};
  return {version, past_within(stream)};
}
// An operation that touches nothing was put into the stream.
inline void note_operation(Stream& stream, Lane::Version learned) {
  stream.lane().settle(learned);
  stream.backend().legacy_lanes().note(stream);
}
inline void wait_for_stream(Stream& stream, Stream& target, const HostTask& task) {
  Ordering(Capture::follower(stream, target), task.lane).wait(target);
}
// What the task knows is known to what the stream does from now on.
inline Lane::Version hand_on(Stream& stream, const HostTask& task) {
  Ordering(stream, task.lane).begin();
  return stream.lane().look();
}
// A host function's task is at its end, which `when` is the moment of. Where another thread's operation came between,
// the lane does not tell which of the two the stream comes to first.
inline void follow_call(HostTask& task, const Past& before, const Moment& when) {
  if (when.count == before.count + 1) task.lane.follow(when);
}
inline void follow_use(HostTask& task, const Use& use) {
  if (use.when.lane) task.lane.follow(use.when);
}
inline void follow_use(Stream& stream, const Use& use) {
  if (use.when.lane) stream.lane().follow(use.when);
}

inline Ref<HostAccess> begin_access(const Ref<HostTask>& task, const Touch& touch, Site site) {
  return make_ref<HostAccess>(task, touch, site);
}

}  // namespace anabranch::python
