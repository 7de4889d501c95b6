#include "stream.hpp"

#include "anabranch/runtime.hpp"
#include "backend.hpp"

namespace anabranch::cuda {
namespace {

CUstream stream_handle(std::uintptr_t handle) noexcept { return reinterpret_cast<CUstream>(handle); }

}  // namespace

CudaStream* as_cuda(Stream& stream) noexcept { return dynamic_cast<CudaStream*>(&stream); }

CudaStream::CudaStream(CudaBackend& backend, LegacyOrder& order, CUstream native, Origin origin)
    : Stream(backend, {}), origin_(origin), native_(native), legacy_(order, *this) {}

void CudaStream::open(StreamOptions options) noexcept {
  options_ = std::move(options);
  stand_in_.open(options_.role == StreamRole::per_thread ? thread_serial() : 0);
  legacy_.open(options_.role, options_.non_blocking);
  // The handles of default streams refer to the current context.
  const bool created = origin_ == Origin::own && options_.role == StreamRole::created;
  marks_context_ = created && device().events().finds_context() ? nullptr : context();
  keeps_blocks_ = origin_ == Origin::own && !under_sanitizer();
  opened_at_ = issued();
  completed_.store(opened_at_, std::memory_order_relaxed);
}

void CudaStream::close() noexcept {
  legacy_.leave();
  free_kept();
  probes_.clear();
  stand_in_.close();
  backend_.unraised().add(std::move(failure_));
  failure_.reset();
  failed_at_.store(never, std::memory_order_relaxed);
  special_.store(0, std::memory_order_relaxed);
}

CudaBackend& CudaStream::device() const noexcept { return static_cast<CudaBackend&>(backend_); }

CUcontext CudaStream::context() const noexcept { return device().context(); }

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

CUstream CudaStream::native() { return stand_in_.own_thread() ? native_ : stand_in_.native(device()); }

void CudaStream::note_completed(Point point) noexcept {
  Point known = completed_.load(std::memory_order_relaxed);
  while (known < point && !completed_.compare_exchange_weak(known, point, std::memory_order_acq_rel)) {
  }
}

bool CudaStream::may_have_failed() const noexcept {
  return (special_.load(std::memory_order_acquire) & failed_bit) != 0 || device().failure();
}

Ref<Failure> CudaStream::failure_at(Point point) const {
  if (Ref<Failure> failure = device().failure()) return failure;
  if (!(special_.load(std::memory_order_acquire) & failed_bit)) return nullptr;
  return failed_at_.load(std::memory_order_acquire) <= point ? failure_ : nullptr;
}

// -- order --

Point CudaStream::suspend(Ref<HostOperation> pending) {
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
      reached = false;  // the failure is passed on in stream order
    }
    return reached ? mark() : hold(std::make_unique<WaitOperation>(target, point, marker));
  }
  if (!(direct() || rejoined()) || other->submitted() < point || other->failure_at(point)) {
    return hold(std::make_unique<WaitOperation>(target, point, marker));
  }
  if (marker || other->completed_.load(std::memory_order_acquire) < point || !legacy_.none()) {
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
  } else if (origin_ == Origin::own && legacy_.none() && sees_end()) [[likely]] {
    // A point that others wait for in a blocking stream already has an event, see `record`.
    event = lead_.covering(point, [this](Ref<CudaMarker>& lead) {
      if (!lead) {
        const ContextScope scope(context());
        lead = device().events().take();
      }
      const ContextScope scope(marks_context_);
      const Point newest = submitted();
      device().check(driver->cuEventRecord(lead->event, native_), "recording an event");
      return newest;
    });
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

// The driver orders the legacy stream and blocking streams as it gets their work. Among those, an operation without
// driver work is therefore an event: whatever comes after the event comes after the other side, too.
Point CudaStream::mark() {
  if (legacy_.none()) return direct_point();
  std::lock_guard lock(mutex_);
  const Point legacy_end = legacy_.legacy_end();
  const Point before = issued();
  // Recorded before the point is issued: a thread that finds the stream empty takes all issued points as completed.
  Ref<CudaMarker> end = record_end();
  const Point point = next_point();
  // Another thread's work before the point may have been enqueued after the event.
  if (point != before + 1) end = record_end();
  add_direct(point);
  // If another thread has begun to hold, the driver may lack work before the point.
  if (submitted() >= point) {
    keep_probe({point, std::move(end), point});
    legacy_.note_marked(legacy_end);
  }
  return point;
}

void CudaStream::mark_held(Point point) {
  if (legacy_.none() || point == 0) return;
  const ContextScope scope(context());
  Ref<CudaMarker> end = put_event(native());
  std::lock_guard lock(mutex_);
  keep_probe({point, std::move(end), point});
}

// To the driver (580), a blocking stream is completed when its work is. A record or a wait in it that still comes after
// the legacy stream's work counts neither for a query nor for a wait for the stream. Only an event shows it.
Point CudaStream::light_point() {
  if (legacy_.none() || legacy_.is_legacy()) return direct_point();
  return legacy_.legacy_end() == legacy_.marked() ? direct_point() : mark();
}

// For a stream that the driver found completed, with points up to `newest`.
bool CudaStream::marks_reached(Point point, Point newest) {
  if (legacy_.none() || legacy_.is_legacy()) {
    note_completed(newest);
    return true;
  }
  std::lock_guard lock(mutex_);
  const auto [mark, no_later] = probes_.last_mark(point);
  if (mark && !reached(*mark)) return false;
  note_completed(no_later ? newest : point);
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
  // The held work of a per-thread stream goes into its stand-in, from the first submitted operation on.
  return stand_in_.shared() ||
         (stand_in_.own_thread() && !(special_.load(std::memory_order_acquire) & (held_bit | rejoin_bit)));
}

// Another thread than the owner observes the end of a per-thread stream through the legacy stream, which comes after
// it.
Ref<CudaMarker> CudaStream::record_end() {
  const ContextScope scope(context());
  return put_event(sees_end() ? native_ : stream_handle(1));
}

// Requires that the context is current.
Ref<CudaMarker> CudaStream::put_event(CUstream native) {
  Ref<CudaMarker> marker = device().events().take();
  device().check(driver->cuEventRecord(marker->event, native), "recording an event");
  marker->note_recorded();
  return marker;
}

Ref<CudaMarker> CudaStream::keep_probe(Probes::Probe probe) {
  return probes_.add(std::move(probe), completed_.load(std::memory_order_acquire));
}

Ref<CudaMarker> CudaStream::cover(Point point) {
  std::lock_guard lock(mutex_);
  if (Ref<CudaMarker> known = probes_.covering(point)) return known;
  const Point newest = submitted();  // read first: work enqueued by then is covered
  return keep_probe({newest, record_end()});
}

bool CudaStream::reached(const CudaMarker& marker) {
  return device().done(cuda::query(marker.event), "querying an event");
}

bool CudaStream::native_reached(Point point) {
  if (completed_.load(std::memory_order_acquire) >= point) return true;
  // An external stream may be destroyed; its work has an event then.
  if (origin_ == Origin::own && sees_end()) {
    const Point newest = submitted();
    if (device().done(driver->cuStreamQuery(native_), "querying a stream")) return marks_reached(point, newest);
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
  // In this order: a failure is set before the point of the failed operation counts as submitted.
  const Point submitted = deferred_.submitted();
  const unsigned special = special_.load(std::memory_order_acquire);
  if ((special & held_bit) && point > submitted) return completed_.load(std::memory_order_acquire) >= point;
  const bool failed = (special & failed_bit) && failed_at_.load(std::memory_order_acquire) <= point;
  if (failed) {
    // Earlier work may still be running.
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
    // All points may be completed while the other side of the legacy order has pending work.
    if (!legacy_.none()) end = put_event(native());
  } catch (const Error&) {
    return false;  // failed, as `query` will report
  }
  return notify(submitted(), end.get(), waiter);
}

bool CudaStream::notify(Point point, CudaMarker* marker, Waiter& waiter) {
  Ref<Marker> kept = Ref<Marker>::share(marker);
  try {
    if (query(point, marker)) return false;
    if (!marker && point <= submitted()) kept = cover(point);
  } catch (const Error&) {
    return false;  // failed, as `query` will report
  }
  device().poller().watch(Ref<CudaStream>::share(this), point, std::move(kept), waiter);
  return true;
}

void CudaStream::free_kept() noexcept {
  if (!stand_in_.own_thread()) return;
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

// Runs on any thread, including the poller, with no lock held. Takes the legacy order's mutex, then the lanes', then
// the device's, one at a time. Frees kept blocks through the driver, which does not block.
void CudaStream::dispose() noexcept {
  forget_recorder();  // may hold the last references to other streams, which are then recycled, too
  device().recycle(*this);
}

}  // namespace anabranch::cuda
