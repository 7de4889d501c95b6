#include "stream.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "anabranch/runtime.hpp"
#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// An unheld stream of no kind: nothing it comes after is ever held.
const std::atomic<int> nothing_held{0};

// Points between these many events are not told apart any more.
constexpr std::size_t most_probes = 16;

CUstream stream_handle(std::uintptr_t handle) noexcept { return reinterpret_cast<CUstream>(handle); }

}  // namespace

CudaStream* as_cuda(Stream& stream) noexcept { return dynamic_cast<CudaStream*>(&stream); }

CudaStream::CudaStream(CudaBackend& backend, LegacyOrder& order, CUstream native, Origin origin)
    : Stream(backend, {}), order_(order), origin_(origin), native_(native) {}

void CudaStream::open(StreamOptions options) noexcept {
  options_ = std::move(options);
  owner_ = options_.role == StreamRole::per_thread ? thread_serial() : 0;
  // The handles of default streams mean the current context's.
  const bool created = origin_ == Origin::own && options_.role == StreamRole::created;
  marks_context_ = created && device().events().finds_context() ? nullptr : context();
  keeps_blocks_ = origin_ == Origin::own && !under_sanitizer();
  opened_at_ = issued();
  marked_legacy_.store(0, std::memory_order_relaxed);
  completed_.store(opened_at_, std::memory_order_relaxed);
  if (options_.role == StreamRole::legacy) {
    other_held_ = &order_.blocking_held;
  } else {
    other_held_ = options_.non_blocking ? &nothing_held : &order_.legacy_held;
  }
}

CudaBackend& CudaStream::device() const noexcept { return static_cast<CudaBackend&>(backend_); }

CUcontext CudaStream::context() const noexcept { return device().context(); }

bool CudaStream::own_thread() const noexcept { return owner_ == 0 || owner_ == thread_serial(); }

std::uintptr_t CudaStream::handle() const noexcept {
  switch (options_.role) {
    case StreamRole::legacy:
      return 1;
    case StreamRole::per_thread:
      return 2;
    default:
      return reinterpret_cast<std::uintptr_t>(native_);
  }
}

Activity CudaStream::activity() const noexcept {
  if (ended_) return {};
  return {completed_.load(std::memory_order_relaxed) - opened_at_, 0};
}

// The driver knows a per-thread stream by the thread that names it. What another thread has to put into it, which is
// what the stream held, goes into a stand-in, which started after all that the owner had put in; the owner's next work
// comes after that.
CUstream CudaStream::native() {
  if (own_thread()) return native_;
  if (!stand_in_) stand_in_ = device().open_blocking();
  if (rejoin_) {
    driver->cuStreamWaitEvent(stand_in_->native_, rejoin_->event, 0);
    rejoin_.reset();
  }
  return stand_in_->native_;
}

void CudaStream::note_completed(Point point) noexcept {
  Point known = completed_.load(std::memory_order_relaxed);
  while (known < point && !completed_.compare_exchange_weak(known, point, std::memory_order_acq_rel)) {
  }
}

Ref<Failure> CudaStream::failure_at(Point point) const {
  if (Ref<Failure> failure = device().failure()) return failure;
  if (!(special_.load(std::memory_order_acquire) & failed_bit)) return nullptr;
  return failed_at_.load(std::memory_order_acquire) <= point ? failure_ : nullptr;
}

// -- order --

Point CudaStream::suspend(Ref<Pending> pending) {
  if (pending->completed() && !pending->failure() && (direct() || rejoined())) return mark();
  return hold(std::make_unique<PendingOperation>(std::move(pending)));
}

Point CudaStream::wait(Stream& target, Point point, Marker* marker) {
  if (&target == this) return issued();
  CudaStream* other = &target.backend() == &backend_ ? static_cast<CudaStream*>(&target) : as_cuda(target);
  if (!other) {
    bool reached = false;
    try {
      reached = direct() && target.backend().query(target, point, marker);
    } catch (const AsyncError&) {
      reached = false;  // the failure is passed on, in its turn
    }
    return reached ? mark() : hold(std::make_unique<WaitOperation>(target, point, marker));
  }
  if (!(direct() || rejoined()) || other->submitted() < point || other->failure_at(point)) {
    return hold(std::make_unique<WaitOperation>(target, point, marker));
  }
  if (marker || other->completed_.load(std::memory_order_acquire) < point || !options_.non_blocking) {
    const ContextScope scope(marks_context_);
    other->lead(device(), native(), point, static_cast<CudaMarker*>(marker));
  }
  return light_point();
}

void CudaStream::lead(CudaBackend& current, CUstream follower, Point point, CudaMarker* marker) {
  Ref<CudaMarker> kept;
  CUevent event = nullptr;
  if (marker && marker->recorded()) {
    event = marker->event;
  } else if (origin_ == Origin::own && options_.non_blocking && sees_end()) [[likely]] {
    // One event serves every wait: recording it again does not move the waits for it that were made. What a blocking
    // stream is waited for has an event already, see `record`.
    std::lock_guard guard(lead_lock_);
    if (lead_point_ < point) {
      if (!lead_) {
        const ContextScope scope(context());
        lead_ = device().events().take();
      }
      const ContextScope scope(marks_context_);
      const Point newest = submitted();
      device().check(driver->cuEventRecord(lead_->event, native_), "recording an event");
      lead_point_ = newest;
    }
    event = lead_->event;
  } else {
    kept = cover(point);
    event = kept->event;
  }
  current.check(driver->cuStreamWaitEvent(follower, event, 0), "waiting for an event");
}

Point CudaStream::record() {
  if (!direct() && !rejoined()) return hold(std::make_unique<MarkOperation>());
  return mark();
}

// The order between the legacy stream and blocking ones is that of what the driver was given. So among those an
// operation that is nothing to the driver is an event: whoever comes after it comes after the other side, too.
Point CudaStream::mark() {
  if (options_.non_blocking) return direct_point();
  std::lock_guard lock(mutex_);
  const Point legacy = order_.legacy->issued();
  const Point before = issued();
  // Before the point: who finds the stream empty takes the points that there are for complete.
  Ref<CudaMarker> end = record_end();
  const Point point = next_point();
  // Another thread's work, in before the point, may not be before the event.
  if (point != before + 1) end = record_end();
  add_direct(point);
  // What another thread has begun to hold before the point is not.
  if (submitted() >= point) {
    keep_probe({point, std::move(end), point});
    marked_legacy_.store(legacy, std::memory_order_release);
  }
  return point;
}

void CudaStream::mark_held(Point point) {
  if (options_.non_blocking || point == 0) return;
  const ContextScope scope(context());
  Ref<CudaMarker> end = put_event(native());
  std::lock_guard lock(mutex_);
  keep_probe({point, std::move(end), point});
}

// For the driver (580) a blocking stream is complete when its work is: a record or a wait in it that still comes after
// the legacy stream's work does not count, neither for a query nor for who waits for the stream. Only an event tells.
Point CudaStream::light_point() {
  if (options_.non_blocking || this == order_.legacy) return direct_point();
  return order_.legacy->issued() == marked_legacy_.load(std::memory_order_acquire) ? direct_point() : mark();
}

// Of a stream that the driver found complete, with points up to the newest one.
bool CudaStream::marks_reached(Point point, Point newest) {
  if (options_.non_blocking || this == order_.legacy) {
    note_completed(newest);
    return true;
  }
  std::lock_guard lock(mutex_);
  const auto after =
      std::find_if(probes_.begin(), probes_.end(), [point](const Probe& probe) { return probe.marks > point; });
  const auto last = std::find_if(std::make_reverse_iterator(after), probes_.rend(),
                                 [](const Probe& probe) { return probe.marks != 0; });
  if (last != probes_.rend() && !reached(*last->marker)) return false;
  note_completed(after == probes_.end() ? newest : point);
  return true;
}

Point CudaStream::record(const EventOptions& options, Ref<Marker>& marker) {
  if (!marker) [[unlikely]] {
    const ContextScope scope(context());
    marker = device().events().take(event_flags(options));
  }
  auto* reused = static_cast<CudaMarker*>(marker.get());
  if (direct() || rejoined()) [[likely]] {
    const ContextScope scope(marks_context_);
    device().check(driver->cuEventRecord(reused->event, native()), "recording an event");
    reused->note_recorded();
    return light_point();
  }
  reused->note_empty();
  return hold(std::make_unique<RecordOperation>(Ref<CudaMarker>::share(reused)));
}

bool CudaStream::sees_end() const noexcept {
  // What a per-thread stream held goes into its stand-in, from the first operation handed on.
  return owner_ == 0 || (own_thread() && !(special_.load(std::memory_order_acquire) & (held_bit | rejoin_bit)));
}

// From another thread than its own, the end of a per-thread stream is seen through the legacy stream, which comes after
// it.
Ref<CudaMarker> CudaStream::record_end() {
  const ContextScope scope(context());
  return put_event(sees_end() ? native_ : stream_handle(1));
}

// With the context current.
Ref<CudaMarker> CudaStream::put_event(CUstream native) {
  Ref<CudaMarker> marker = device().events().take();
  device().check(driver->cuEventRecord(marker->event, native), "recording an event");
  marker->note_recorded();
  return marker;
}

// What is put in by the probe's point is covered.
const Ref<CudaMarker>& CudaStream::keep_probe(Probe probe) {
  const Point known = completed_.load(std::memory_order_acquire);
  probes_.push_back(std::move(probe));
  auto over =
      std::find_if(probes_.begin(), probes_.end() - 1, [known](const Probe& kept) { return kept.point > known; });
  // Who asks for the points of the oldest gets the next one's, which covers more.
  if (over == probes_.begin() && probes_.size() > most_probes) {
    if (over->marks != 0) over[1].marks = over->marks;
    ++over;
  }
  probes_.erase(probes_.begin(), over);
  return probes_.back().marker;
}

Ref<CudaMarker> CudaStream::cover(Point point) {
  std::lock_guard lock(mutex_);
  for (const Probe& probe : probes_) {
    if (probe.point >= point) return probe.marker;
  }
  const Point newest = submitted();  // read first: what is put in by then is covered
  return keep_probe({newest, record_end()});
}

// On the thread that ends, after Python is done with it: no lock is held, the interpreter's neither, so it may block.
OwnStreams::~OwnStreams() {
  // The main thread's streams end with the process, which waits for no kernel.
  if (syscall(SYS_gettid) == getpid() || forked()) return;
  for (const auto& [device, stream] : streams) {
    stream->free_kept();
    const ContextScope scope(device->context());
    driver->cuStreamSynchronize(stream->native());
  }
}

bool CudaStream::reached(const CudaMarker& marker) {
  return device().done(cuda::query(marker.event), "asking an event");
}

bool CudaStream::native_reached(Point point) {
  if (completed_.load(std::memory_order_acquire) >= point) return true;
  // A stream of somebody else's may be gone; what it was given has an event then.
  if (origin_ == Origin::own && sees_end()) {
    const Point newest = submitted();
    if (device().done(driver->cuStreamQuery(native_), "asking a stream")) return marks_reached(point, newest);
    if (point == newest) return false;
  }
  const Ref<CudaMarker> marker = cover(point);
  if (!reached(*marker)) return false;
  note_completed(point);
  return true;
}

bool CudaStream::query(Point point, CudaMarker* marker) {
  if (Ref<Failure> failure = device().failure()) throw AsyncError(std::move(failure));
  if (marker && marker->over()) return true;
  const ContextScope scope(context());
  // In this order: a failure is there before the point of what failed counts as submitted.
  const Point submitted = submitted_.load(std::memory_order_acquire);
  const unsigned special = special_.load(std::memory_order_acquire);
  if ((special & held_bit) && point > submitted) return completed_.load(std::memory_order_acquire) >= point;
  const bool failed = (special & failed_bit) && failed_at_.load(std::memory_order_acquire) <= point;
  if (failed) {
    // What came before may still be running.
    if (!native_reached(failed_at_.load() - 1)) return false;
    throw AsyncError(failure_);
  }
  if (!marker || !marker->recorded()) return native_reached(point);
  if (!reached(*marker)) return false;
  marker->note_over();
  return true;
}

bool CudaStream::notify_held(Waiter& waiter) {
  Ref<CudaMarker> end;
  try {
    const ContextScope scope(context());
    // All points may be complete, and the other side of the legacy order have work since.
    if (!options_.non_blocking) end = put_event(native());
  } catch (const Error&) {
    return false;  // failed, as `query` will say
  }
  return notify(submitted(), end.get(), waiter);
}

bool CudaStream::notify(Point point, CudaMarker* marker, Waiter& waiter) {
  Ref<Marker> kept = Ref<Marker>::share(marker);
  try {
    if (query(point, marker)) return false;
    if (!marker && point <= submitted()) kept = cover(point);
  } catch (const Error&) {
    return false;  // failed, as `query` will say
  }
  device().poller().watch(Ref<CudaStream>::share(this), point, std::move(kept), waiter);
  return true;
}

void CudaStream::free_kept() noexcept {
  if (!own_thread()) return;
  Block block = kept_.take_any();
  if (block.pointer == 0 || forked()) return;
  const ContextScope scope(context());
  for (; block.pointer != 0; block = kept_.take_any()) driver->cuMemFreeAsync(block.pointer, native_);
}

// -- kernels --

void CudaStream::note_kernel(Kernel& kernel) noexcept {
  if (last_kernel_.load(std::memory_order_relaxed) == &kernel) return;
  kernel.retain();
  if (Kernel* before = last_kernel_.exchange(&kernel, std::memory_order_acq_rel)) before->release();
}

Ref<Kernel> CudaStream::take_kernel() noexcept {
  return Ref<Kernel>::take(last_kernel_.exchange(nullptr, std::memory_order_acq_rel));
}

// Any thread, the poller too, under no lock: takes the legacy order's mutex, then the lanes', then the device's, one at
// a time. Frees kept blocks through the driver, which does not block.
void CudaStream::dispose() noexcept {
  forget_recorder();  // may hold the last references to other streams, which are recycled here too
  device().recycle(*this);
}

}  // namespace anabranch::cuda
