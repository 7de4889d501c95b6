#include "anabranch/stream/event.hpp"

#include <functional>
#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/explore/host_access.hpp"
#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/hazard.hpp"

namespace anabranch {

Record Event::last() const {
  std::lock_guard guard(lock_);
  return last_;
}

void Event::refuse(const Stream& stream) const {
  const Capabilities& own = backend_.capabilities();
  const Capabilities& other = stream.backend().capabilities();
  throw Error(ErrorKind::device, "an event of " + own.kind + ":" + std::to_string(own.index) +
                                     " cannot be recorded on a stream of " + other.kind + ":" +
                                     std::to_string(other.index) + "; create the event with that device");
}

void Event::record(Stream& stream, const Lane* task) {
  if (&stream.backend() != &backend_ && &stream.backend().device() != &backend_) refuse(stream);
  if (exploring()) [[unlikely]]
    explore::host_records(*this, stream);
  if (task) Ordering(stream, *task).begin();
  const Lane::Version snapshot = task ? stream.backend().legacy_lanes().join_and_snapshot(stream) : 0;
  Record before;  // released outside the lock, because this may recycle the stream
  std::unique_lock guard(lock_);
  // Read before the record, which may not cover concurrent work of another thread.
  const Lane::Version version = task ? stream.lane().version() : 0;
  Past past = version != 0 && version != last_.version ? stream.lane().past() : Past{};
  // If others hold the marker, it stays theirs.
  if (last_.marker && !last_.marker->unique()) before.marker = std::move(last_.marker);
  try {
    last_.point = stream.backend().record(stream, options_, last_.marker);
  } catch (...) {
    if (before.marker) {
      last_.marker = std::move(before.marker);
    } else {
      before = std::exchange(last_, Record{});  // the state behind its marker may be gone
    }
    throw;
  }
  stream.backend().legacy_lanes().note(stream, snapshot);
  if (version != last_.version) {
    last_.past = std::move(past);
    last_.version = version;
  }
  if (last_.stream.get() != &stream) before.stream = std::exchange(last_.stream, Ref<Stream>::share(&stream));
  if (tracing()) {
    const Point point = last_.point;
    guard.unlock();  // finding the site runs Python, and a thread waiting for this lock may hold the interpreter lock
    open_operation(stream);
    close_operation(stream, {.kind = OperationKind::record, .point = point});
  }
}

void Event::wait(Stream& waiting, const Lane* task) const {
  if (exploring()) [[unlikely]]
    explore::host_reads(*this);
  const Record record = last();
  Stream& stream = record.stream ? Capture::follower(waiting, *record.stream) : waiting;
  // A wait in the record's own stream enqueues nothing and makes no order, in particular none with the legacy stream.
  if (!record.stream || record.stream.get() == &stream) return;
  if (task) Ordering(stream, *task).begin();
  Ordering::wait(stream, record);
}

bool Event::query(HostTask* task) const {
  if (exploring()) [[unlikely]]
    explore::host_reads(*this);
  std::unique_lock guard(lock_);
  if (!last_.stream) return true;
  if (last_.stream->capture()) {
    const Record record = last_;
    guard.unlock();  // the query ends the capture, which releases many objects
    return record.stream->backend().query(*record.stream, record.point);
  }
  if (!backend_.query(*last_.stream, last_.point, last_.marker.get())) return false;
  if (task) task->observe(last_.past, last_.version);
  return true;
}

std::optional<double> Event::elapsed(const Event& end, HostTask* task) const {
  // In address order, so that two threads that measure in opposite directions do not deadlock.
  const bool ahead = std::less<const Event*>()(this, &end);
  std::lock_guard first(ahead ? lock_ : end.lock_);
  std::unique_lock second(ahead ? end.lock_ : lock_, std::defer_lock);
  if (this != &end) second.lock();
  if (!has_time() || !end.has_time()) return std::nullopt;
  const std::optional<double> milliseconds = backend_.elapsed(last_, end.last_);
  if (milliseconds && task) {
    task->observe(last_.past, last_.version);
    task->observe(end.last_.past, end.last_.version);
  }
  return milliseconds;
}

std::uintptr_t Event::handle() {
  std::lock_guard guard(lock_);
  if (!last_.stream && !last_.marker) last_.marker = backend_.make_marker(options_);
  const std::uintptr_t handle = last_.marker ? last_.marker->handle() : 0;
  return handle != 0 ? handle : reinterpret_cast<std::uintptr_t>(this);
}

double elapsed_milliseconds(const Record& begin, const Record& end) {
  const std::optional<double> milliseconds = begin.stream->backend().elapsed(begin, end);
  if (!milliseconds) throw Error(ErrorKind::event, "there is no time between events that are not complete");
  return *milliseconds;
}

}  // namespace anabranch
