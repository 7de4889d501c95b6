#include "anabranch/hazard/hazard.hpp"

#include <algorithm>
#include <atomic>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"
#include "anabranch/stream/host.hpp"

namespace anabranch {
namespace {

std::atomic<std::uint64_t> added{0};
std::atomic<bool> checking{false};

// The moment of the newest operation that this thread has noted, kept to reuse its references.
thread_local Moment* newest_moment = nullptr;

Moment* make_newest_moment() noexcept {
  thread_local Moment moment;
  return newest_moment = &moment;
}

// From the first to the last operation that a host function has enqueued in a stream.
struct Enqueued {
  Ref<Stream> stream;
  Point first;
  Point last;
};

// Those of the host function that this thread runs; null if it runs none.
thread_local std::vector<Enqueued>* enqueued = nullptr;

void note_enqueued(Stream& stream, Point point) {
  if (stream.capture()) return;
  for (Enqueued& each : *enqueued) {
    if (each.stream.get() == &stream) {
      each.last = std::max(each.last, point);
      return;
    }
  }
  enqueued->push_back({Ref<Stream>::share(&stream), point, point});
}

// Whether a failed use came after pending work of another stream than `next`.
bool comes_after_pending(const Use& use, const Stream& next) {
  const std::vector<Use> before = pending_before(use);
  return std::any_of(before.begin(), before.end(), [&next](const Use& other) { return other.stream.get() != &next; });
}

// Whether the first access has failed, and the second, of the stream `next`, needs nothing of it: what a failed read
// has read is intact, and what a failed write has left is overwritten. With a wait the second would fail for nothing,
// and its stream with it. In a capture and in an exploration every wait is made.
bool is_needless(const Race& race, const Stream& next) {
  const Use& use = race.first;
  if (!use.stream->may_have_failed() || (writes(use.access) && !race.overwritten) || exploring()) return false;
  try {
    use.stream->backend().query(*use.stream, use.point);
    return false;
  } catch (const Error&) {
    return !comes_after_pending(use, next);
  }
}

}  // namespace

bool checks_begun() noexcept { return checking.load(std::memory_order_relaxed); }

void begin_checks() noexcept { checking.store(true, std::memory_order_relaxed); }

std::uint64_t added_waits() noexcept { return added.load(std::memory_order_relaxed); }

bool HostTask::precedes(const Use& use) const noexcept {
  return call.lane && use.when.lane && (use.when.lane == call.lane || use.when.follows(call));
}

bool HostTask::ignores(const Use& use) const noexcept { return precedes(use) && !enqueued_by_function(use); }

void begin_function(const Stream& stream) noexcept {
  thread_local std::vector<Enqueued> operations;
  host_function_stream() = &stream;
  enqueued = &operations;
}

void end_function() noexcept {
  host_function_stream() = nullptr;
  enqueued->clear();
  enqueued = nullptr;
}

bool enqueued_by_function(const Use& use) noexcept {
  return enqueued && std::any_of(enqueued->begin(), enqueued->end(), [&use](const Enqueued& each) {
           return each.stream.get() == use.stream.get() && each.first <= use.point && use.point <= each.last;
         });
}

bool HostTask::has_open(const Use& use) const noexcept {
  return std::find(open.begin(), open.end(), use.when.lane) != open.end();
}

HostAccess::HostAccess(Ref<HostTask> task, const Touch& touch, Site site, bool kept)
    : task_(std::move(task)), storage_(Ref<Storage>::share(touch.storage)), kept_(kept) {
  lane_.follow(task_->lane.past());
  Moment when = lane_.advance();
  number_ = when.lane;
  task_->open.push_back(number_);
  storage_->accesses().begin_host(std::move(when), touch.access, touch.footprint(), site, task_->call);
}

void HostAccess::end() {
  if (!number_) return;
  storage_->accesses().end_host(number_, kept_);
  storage_.reset();
  std::erase(task_->open, number_);
  number_.reset();
  task_->lane.follow(lane_.past());
}

void Ordering::wait(Stream& target) {
  begin();
  const Lane::Version recorded = target.backend().legacy_lanes().join_and_snapshot(target);
  const Lane::Version snapshot = stream_.backend().legacy_lanes().join_and_snapshot(stream_);
  const Lane::Version version = target.lane().version();
  const Past past = version == stream_.target_seen_.load(std::memory_order_acquire) ? Past{} : target.lane().past();
  enqueue_wait(stream_, target, target.backend().record(target), nullptr, false);
  target.backend().legacy_lanes().note(target, recorded);
  follow(stream_, past, version, snapshot);
}

void Ordering::wait(Stream& stream, const Record& record) {
  const Lane::Version snapshot = stream.backend().legacy_lanes().join_and_snapshot(stream);
  enqueue_wait(stream, *record.stream, record.point, record.marker.get(), false);
  follow(stream, record.past, record.version, snapshot);
}

void Ordering::follow(Stream& stream, const Past& past, Lane::Version version, Lane::Version snapshot) {
  if (snapshot != 0) stream.lane().settle(snapshot);
  if (version == 0 || version != stream.target_seen_.load(std::memory_order_acquire)) {
    stream.lane().follow(past);
    stream.target_seen_.store(version, std::memory_order_release);
  }
  stream.backend().legacy_lanes().note(stream);
}

Past Ordering::coming() const {
  const Past legacy = stream_.backend().legacy_lanes().coming(stream_);
  Past past = stream_.lane().past();
  past.add(task_.past());
  past.add(legacy);
  return past;
}

std::vector<Race> Ordering::missing(std::span<const Touch> touches, const Past& before) const {
  std::vector<Race> found;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const Touch& touch = touches[i];
    if (touch.storage->accesses().only(stream_)) continue;
    for (Use& use : touch.storage->conflicts(before, &stream_, touch.access, touch.footprint())) {
      const ByteRange bytes = use.where.bytes();
      const bool overwritten = touch.overwrites && touch.low <= bytes.low && bytes.high <= touch.high;
      found.push_back({std::move(use), i, overwritten});
    }
  }
  return found;
}

void Ordering::add(const std::vector<Race>& missing, const HostTask& task) {
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Use& use = missing[i].first;
    if (!use.stream || task.ignores(use)) continue;
    // A wait for a later operation covers this one.
    const bool covered = std::any_of(missing.begin(), missing.end(), [&](const Race& race) {
      const Use& other = race.first;
      if (&other == &use || !other.stream) return false;
      const bool later = other.stream == use.stream
                             ? other.point > use.point || (other.point == use.point && &other < &use)
                             : other.when.lane && use.when.lane && !task.ignores(other) && other.when.follows(use.when);
      return later && !is_needless(race, stream_);  // nobody waits for that
    });
    if (!covered && !use.stream->backend().known_completed(*use.stream, use.point) &&
        !is_needless(missing[i], stream_)) {
      enqueue_wait(stream_, *use.stream, use.point, nullptr, true);
      added.fetch_add(1, std::memory_order_relaxed);
    }
    if (use.when.lane) stream_.lane().follow(use.when);
  }
}

void Ordering::note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                    Lane::Version snapshot) {
  Moment* moment = nullptr;
  if (mode != HazardMode::off) {
    moment = newest_moment ? newest_moment : make_newest_moment();
    stream.lane().advance(*moment, snapshot);
  }
  note(stream, point, touches, mode, site, moment);
}

void Ordering::note(Stream& stream, Point point, std::span<const Touch> touches, HazardMode mode, Site site,
                    const Moment* made) {
  Noted operation{stream, point, mode == HazardMode::off ? nullptr : made, site, mode == HazardMode::check};
  // Two threads may arrive here in another order than they enqueued. A moment includes all earlier moments of the
  // stream, so a wait for it must cover everything enqueued so far.
  operation.point = std::max(point, stream.issued());
  if (enqueued) [[unlikely]]
    note_enqueued(stream, operation.point);
  for (const Touch& touch : touches) touch.storage->accesses().note(touch, operation);
  if (operation.when) stream.backend().legacy_lanes().note(stream);
}

}  // namespace anabranch
