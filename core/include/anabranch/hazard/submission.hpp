#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/hazard/hazard.hpp"

namespace anabranch {

// Keeps touched memory alive while code runs that may close the arrays.
class KeptMemory {
 public:
  KeptMemory() = default;
  KeptMemory(const Touch* touches, std::size_t count);
  // Whether this holds the last reference to one of the blocks.
  bool given_up() const noexcept;

 private:
  std::vector<Ref<Storage>> storages_;
};

// An operation that was refused, with everything that a report of the races needs.
struct Refusal {
  std::vector<Race> races;
  std::vector<Touch> touches;  // indexed by `Race::second`
  Ref<Stream> stream;
  KeptMemory memory;
  std::vector<Race> unreported;  // missing order that `proceed` adds without a report
};

// One operation that a host task enqueues. Every operation that touches memory takes these steps:
//
//   Submission submission(stream, mode, touches);
//   const auto refusal = submission.begin(task, capture);
//   if (refusal) ...                                // report it, then throw or `proceed`
//   const Point point = backend.copy(stream, ...);  // any verb that enqueues
//   submission.commit(point, site);
//
// `begin` adds the order that the operation needs; `commit` records its accesses. A submission dropped in between,
// because the verb threw or the operation was refused, records no access. Waits and clock updates of `begin` remain:
// superfluous order is harmless.
//
// The touched memory must stay alive from `begin` to `commit`: the caller runs no Python code, or keeps the arrays.
// `touches` belong to the caller and outlive the submission. A submission belongs to one thread; several threads may
// submit to one stream at once. No lock is held between the steps. Each step takes the locks of the stream's lane and
// of the touched storages, one at a time, and the capture's in a capture. No step runs Python code.
class Submission {
 public:
  Submission() = default;
  Submission(Stream& stream, HazardMode mode, std::span<const Touch> touches) noexcept
      : stream_(&stream), touches_(touches), mode_(mode) {}

  // `automatic` adds waits for missing order, and refuses the operation if it conflicts with an access by the host that
  // has not ended, for which no stream can wait. `check` refuses the operation if order is missing: it updates no
  // clock, and the operation must not be enqueued before `proceed`. `off` does neither. Returns null unless the
  // operation is refused. `capture`: the active capture of the task, or null; the stream may be one of its recorders,
  // or any other stream.
  //
  // Throws Error(capture) if the capture has ended or is exclusive, std::bad_alloc, and what `Backend::wait` throws for
  // an added wait. The operation must not be enqueued then.
  std::unique_ptr<Refusal> begin(const HostTask& task, Capture* capture) {
    Refusal* refusal = nullptr;
    if (stream_->capture() || capture) [[unlikely]] {
      refusal = begin_captured(task, capture);
    } else {
      refusal = order(task, touches_);
    }
    if (!refusal) start();
    return std::unique_ptr<Refusal>(refusal);
  }
  // For accesses that the caller has already ordered. Throws only std::bad_alloc.
  void begin_in_order() { snapshot_ = stream_->lane().snapshot(); }
  // Continues after the races of a refusal were reported. Returns false if an array was closed meanwhile; the operation
  // must not be enqueued then. Throws as `begin` does.
  [[nodiscard]] bool proceed(const HostTask& task, const Refusal& refusal);

  // Records the accesses of the enqueued operation. Throws std::bad_alloc; the operation stays enqueued.
  void commit(Point point, Site site) {
    if (stream_->capture()) [[unlikely]]
      return commit_captured(point, site);
    Ordering::note(*stream_, point, touches_, mode_, site, snapshot_);
  }

  // Host functions need their order before `commit`, because they may run at once.
  // Between `begin` and enqueueing: what the operation comes after.
  Past past();
  // Right after enqueueing: its moment.
  Moment advance() { return stream_->lane().advance(snapshot_); }
  // Replaces `commit`. `when` has no lane if order is not tracked.
  void commit_call(Point point, Site site, const Moment& when);

 private:
  Refusal* order(const HostTask& task, std::span<const Touch> touches) {
    Ordering ordering(*stream_, task.lane);
    if (mode_ == HazardMode::automatic) {
      ordering.begin();
      if (!ordering.clear(touches)) return add_missing(task, touches);
    } else if (mode_ == HazardMode::check) {
      // A refused operation must not update the stream's clock.
      if (!ordering.clear(touches)) return check(task, touches);
      ordering.begin();
    }
    return nullptr;
  }
  void start() {
    if (observing()) [[unlikely]]
      observe();
    snapshot_ = stream_->lane().snapshot();
  }
  Refusal* add_missing(const HostTask& task, std::span<const Touch> touches);
  Refusal* check(const HostTask& task, std::span<const Touch> touches);
  void observe();
  Refusal* begin_captured(const HostTask& task, Capture* capture);
  void commit_captured(Point point, Site site);

  Stream* stream_ = nullptr;
  std::span<const Touch> touches_;
  Lane::Version snapshot_ = 0;  // of the stream's lane, just before the operation is enqueued
  HazardMode mode_ = HazardMode::off;
};

}  // namespace anabranch
