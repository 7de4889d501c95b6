#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/hazard.hpp"

namespace anabranch {

// Keeps the memory of touches alive while code runs that may close the arrays.
class KeptMemory {
 public:
  KeptMemory() = default;
  KeptMemory(const Touch* touches, std::size_t count);
  // Whether nobody else keeps one of the blocks any more.
  bool given_up() const noexcept;

 private:
  std::vector<Ref<Storage>> storages_;
};

// An operation that is refused, with what it takes to report the races.
struct Refusal {
  std::vector<Race> races;
  std::vector<Touch> touches;  // that `Race::second` counts
  Ref<Stream> stream;
  KeptMemory memory;
  std::vector<Race> untold;  // order that is missing, too, but is added: nobody is told of those accesses
};

// One operation on its way into a stream, by a host task. Everything that touches memory goes through these steps:
//
//   Submission submission(stream, mode, touches);
//   const auto refusal = submission.begin(task, capture);
//   if (refusal) ...                                // report it, then give up, or `proceed`
//   const Point point = backend.copy(stream, ...);  // any verb that enqueues
//   submission.commit(point, site);
//
// `begin` makes the order that the operation needs, `commit` remembers its accesses. A submission that is dropped in
// between, because the verb threw or the operation was refused, leaves no access behind. The waits that `begin` added
// stay, and so does what the stream learned from the task: more order than needed harms no later operation.
//
// From `begin` to `commit` the touched memory must live: the caller runs no Python code, or keeps the arrays. `touches`
// belong to the caller and outlive the submission. One thread uses a submission; any number of threads may submit to
// one stream at once. No lock is held between the steps. Each takes the locks of the stream's lane and of the touched
// storages, one at a time, and in a capture the capture's; none runs Python code.
class Submission {
 public:
  Submission() = default;
  Submission(Stream& stream, HazardMode mode, std::span<const Touch> touches) noexcept
      : stream_(&stream), touches_(touches), mode_(mode) {}

  // Under `automatic`, has the stream wait for what the operation lacks, and refuses it if that is the end of an access
  // of the host's, which no stream can wait for. Under `check`, refuses the operation if it lacks something: then
  // nobody has been told of it, and nothing may be enqueued before `proceed`. Under `off`, neither. Null: it is in
  // order, as far as it will be. `capture`: the one that the task is in, or null; the stream may be a recorder of it,
  // or none.
  //
  // Throws Error(capture) in a capture that has ended, or that nothing else may go beside; what `Backend::wait` throws
  // for a wait that is added; std::bad_alloc. The operation must not be enqueued then.
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
  // For accesses that somebody else has put in order. Throws nothing but std::bad_alloc.
  void begin_in_order() { learned_ = stream_->lane().look(); }
  // The races of a refusal were reported, and the operation goes ahead all the same. False if memory was given up
  // meanwhile: then nothing may be enqueued. Throws as `begin` does.
  [[nodiscard]] bool proceed(const HostTask& task, const Refusal& refusal);

  // The operation was enqueued, at that point, by code at `site`. Throws std::bad_alloc, with the operation enqueued.
  void commit(Point point, Site site) {
    if (stream_->capture()) [[unlikely]]
      return commit_captured(point, site);
    Ordering::note(*stream_, point, touches_, mode_, site, learned_);
  }

  // An operation that runs code of the program's on the host has to know where it stands before `commit`:
  // between `begin` and enqueuing, everything that it comes after,
  Past past();
  // right after enqueuing, its moment,
  Moment advance() { return stream_->lane().advance(learned_); }
  // and this in place of the other `commit`, with a moment of no lane where order is not kept track of.
  void commit_call(Point point, Site site, const Moment& when);

 private:
  Refusal* order(const HostTask& task, std::span<const Touch> touches) {
    Ordering ordering(*stream_, task.lane);
    if (mode_ == HazardMode::automatic) {
      ordering.begin();
      if (!ordering.clear(touches)) return add_missing(task, touches);
    } else if (mode_ == HazardMode::check) {
      // A stream whose operation may be refused is not told of it.
      if (!ordering.clear(touches)) return check(task, touches);
      ordering.begin();
    }
    return nullptr;
  }
  void start() {
    if (tracing()) [[unlikely]]
      open_operation(*stream_);
    learned_ = stream_->lane().look();
  }
  Refusal* add_missing(const HostTask& task, std::span<const Touch> touches);
  Refusal* check(const HostTask& task, std::span<const Touch> touches);
  Refusal* begin_captured(const HostTask& task, Capture* capture);
  void commit_captured(Point point, Site site);

  Stream* stream_ = nullptr;
  std::span<const Touch> touches_;
  Lane::Version learned_ = 0;  // by the stream's lane, right before the operation is enqueued
  HazardMode mode_ = HazardMode::off;
};

}  // namespace anabranch
