#pragma once

#include <sched.h>

#include <atomic>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/hazard.hpp"

// Order between streams and the host: the uses that the host's own accesses wait for or race with, and the clocks of
// host tasks that observe or use streams. Operations that touch memory use `Submission`. Any thread may call these.
namespace anabranch {

// -- accesses by the host --

// The uses that must be completed before the host makes an access.
std::vector<Use> uses_of(const Touch& touch);
// The same without uses of others that come after the task's own host function, which cannot wait for them.
std::vector<Use> uses_before(const HostTask& task, const Touch& touch);
// Whether the host function waits for itself if it waits for the use, or for what comes after `past`.
bool is_own_wait(const HostTask& task, const Use& use);
bool is_own_wait(const HostTask& task, const Past& past);
// The uses that the access races with: conflicting ones that the task has not observed as completed.
std::vector<Use> host_conflicts(const HostTask& task, const Touch& touch);
// The accesses by the host that have not ended and that a new operation conflicts with.
std::vector<Use> open_conflicts(const HostTask& task, const Touch& touch);
// `host_conflicts` for the release of a storage, without uses of bytes that neighbours keep alive.
std::vector<Use> return_conflicts(const HostTask& task, const Touch& touch);
// Records the access.
void note_host(HostTask& task, const Touch& touch, Site site);

inline void follow_use(HostTask& task, const Use& use) {
  if (use.when.lane) task.lane.follow(use.when);
}
inline void follow_use(Stream& stream, const Use& use) {
  if (use.when.lane) stream.lane().follow(use.when);
}

// -- observing streams --

// What an operation enqueued now would come after.
inline Past past_of(Stream& stream) {
  stream.backend().legacy_lanes().join(stream);
  return stream.lane().past();
}
// What is completed once the stream's work is. A blocking stream leaves out the legacy stream's newer work; the legacy
// stream includes the work of blocking streams.
inline Past past_within(Stream& stream) {
  if (stream.role() != StreamRole::legacy) return stream.lane().settled();
  stream.backend().legacy_lanes().join(stream);
  return stream.lane().past();
}
// What a task can observe from a stream. `version` is 0 if the task has already observed it.
struct Observation {
  Lane::Version version = 0;
  Past past = {};
};
inline Observation observation_of(Stream& stream, const HostTask& task) {
  if (stream.role() == StreamRole::legacy) stream.backend().legacy_lanes().join(stream);
  const Lane::Version version = stream.lane().version();
  if (task.has_observed(version)) return {};
  return {version, past_within(stream)};
}

// -- operations that touch no memory --

// Call this before enqueueing one: the stream's clock joins the task's. Pass the result to `note_operation`
// afterwards.
inline Lane::Version begin_operation(Stream& stream, const HostTask& task) {
  Ordering(stream, task.lane).begin();
  return stream.lane().snapshot();
}
// Call this after enqueueing it.
inline void note_operation(Stream& stream, Lane::Version snapshot) {
  stream.lane().settle(snapshot);
  stream.backend().legacy_lanes().note(stream);
}
// Later operations of the stream start after everything enqueued in `target` so far. If `target` is captured, the
// stream joins the capture. Throws as `Backend::wait` does.
inline void wait_for_stream(Stream& stream, Stream& target, const HostTask& task) {
  Ordering(Capture::follower(stream, target), task.lane).wait(target);
}

// -- host functions --

// The moment of a host function. The enqueueing thread sets it after enqueueing, because moments count in the order of
// the stream's operations; by then another thread may already run the function.
class DeferredMoment {
 public:
  void set(Moment moment) noexcept {
    moment_ = std::move(moment);
    known_.store(true, std::memory_order_release);
  }
  bool is_set() const noexcept { return known_.load(std::memory_order_acquire); }
  // Waits until it is set, for at most the duration of a driver call. Must not hold the interpreter lock.
  const Moment& get() const noexcept {
    while (!known_.load(std::memory_order_acquire)) sched_yield();
    return moment_;
  }

 private:
  std::atomic<bool> known_{false};
  Moment moment_;
};

// Updates the clock of a host function's task before the function runs. `when`: the function's moment. Does nothing if
// another thread advanced the lane in between, because the order of the two operations is then unknown.
inline void follow_call(HostTask& task, const Past& before, const Moment& when) {
  if (when.count == before.count + 1) task.lane.follow(when);
}

}  // namespace anabranch
