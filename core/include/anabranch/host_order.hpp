#pragma once

#include <sched.h>

#include <atomic>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/capture.hpp"
#include "anabranch/hazard.hpp"

// Order between streams and what the host does itself: what its accesses wait for and race with, what it learns from
// looking at a stream, and what it hands on. What it enqueues that touches memory is a `Submission`. Any thread.
namespace anabranch {

// -- accesses of the host --

// What has to be over before the host makes an access.
std::vector<Use> uses_of(const Touch& touch);
// The same for a task, which cannot wait for what comes after the host function that it is.
std::vector<Use> uses_before(const HostTask& task, const Touch& touch);
// What the access races with: none of it does the task know to be over.
std::vector<Use> host_conflicts(const HostTask& task, const Touch& touch);
// The accesses of the host's, not ended, that work which is about to begin conflicts with.
std::vector<Use> open_conflicts(const HostTask& task, const Touch& touch);
// What the access races with where a storage is about to go, but for bytes that others have, whose owner keeps the
// memory.
std::vector<Use> return_conflicts(const HostTask& task, const Touch& touch);
// The host has made the access.
void note_host(HostTask& task, const Touch& touch, Site site);

inline void follow_use(HostTask& task, const Use& use) {
  if (use.when.lane) task.lane.follow(use.when);
}
inline void follow_use(Stream& stream, const Use& use) {
  if (use.when.lane) stream.lane().follow(use.when);
}

// -- looking at streams --

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

// -- operations that touch no memory --

// Before one is enqueued: what the task knows is known to what the stream does from now on. What it returns goes to
// `note_operation`.
inline Lane::Version hand_on(Stream& stream, const HostTask& task) {
  Ordering(stream, task.lane).begin();
  return stream.lane().look();
}
// And after.
inline void note_operation(Stream& stream, Lane::Version learned) {
  stream.lane().settle(learned);
  stream.backend().legacy_lanes().note(stream);
}
// What is put into the stream from now on starts after everything in `target` by now. In a capture that `target` takes
// part in, the stream takes part from then on. Throws what `Backend::wait` does.
inline void wait_for_stream(Stream& stream, Stream& target, const HostTask& task) {
  Ordering(Capture::follower(stream, target), task.lane).wait(target);
}

// -- host functions --

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

// A host function's task is at its end, which `when` is the moment of. Where another thread's operation came between,
// the lane does not tell which of the two the stream comes to first.
inline void follow_call(HostTask& task, const Past& before, const Moment& when) {
  if (when.count == before.count + 1) task.lane.follow(when);
}

}  // namespace anabranch
