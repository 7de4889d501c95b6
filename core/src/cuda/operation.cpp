#include "operation.hpp"

#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// Sets the flag, after which the operation may be destroyed at once, and makes its stream ready.
void ring(std::atomic<bool>& flag, CudaStream& stream) noexcept {
  const Ref<CudaStream> kept = Ref<CudaStream>::share(&stream);
  flag.store(true, std::memory_order_release);
  kept->device().poller().ready(*kept);
}

}  // namespace

bool MarkOperation::step(CudaStream& stream, Ref<Failure>&) {
  stream.mark_held(point());
  return true;
}

bool WorkOperation::step(CudaStream& stream, Ref<Failure>&) {
  const ContextScope scope(stream.device().context());
  submit_(stream.native());
  return true;
}

bool FreeOperation::step(CudaStream&, Ref<Failure>&) {
  const ContextScope scope(stream_.device().context());
  driver->cuMemFreeAsync(pointer_, stream_.native());
  return true;
}

// The stream has not waited for what came before the last use of the memory.
void FreeOperation::skip(const Ref<Failure>&) noexcept {
  std::vector<Use> uses;
  uses.push_back({Ref<Stream>::share(&stream_), point()});
  stream_.device().memory().free_after(pointer_, still_pending(std::move(uses)));
}

bool RecordOperation::step(CudaStream& stream, Ref<Failure>&) {
  const ContextScope scope(stream.device().context());
  stream.device().check(driver->cuEventRecord(marker_->event, stream.native()), "recording an event");
  marker_->note_recorded();
  stream.mark_light_held(point());
  return true;
}

bool WaitOperation::step(CudaStream& stream, Ref<Failure>& failure) {
  CudaStream* target = as_cuda(*target_);
  if (!target) return step_beside(stream, failure);
  if (target->submitted() < until_) {
    if (!std::exchange(asked_, true) && target->when_submitted(until_, stream)) return step(stream, failure);
    return false;
  }
  failure = target->failure_at(until_);
  if (failure) return true;
  const ContextScope scope(stream.device().context());
  target->lead(stream.device(), stream.native(), until_, static_cast<CudaMarker*>(marker_.get()));
  stream.mark_light_held(point());
  return true;
}

bool WaitOperation::step_beside(CudaStream& stream, Ref<Failure>& failure) {
  if (!std::exchange(asked_, true)) {
    stream_ = &stream;
    stream.mark_held(point());
    Backend& backend = target_->backend();
    if (backend.notify(*target_, until_, *this, marker_.get())) return false;
    backend.query(*target_, until_, marker_.get());  // throws the target's failure
    return true;
  }
  if (!woken_.load(std::memory_order_acquire)) return false;
  failure = met_;
  return true;
}

void WaitOperation::wake(const Ref<Failure>& failure) noexcept {
  met_ = failure;
  ring(woken_, *stream_);
}

bool PendingOperation::step(CudaStream& stream, Ref<Failure>& failure) {
  if (state_ == State::fresh) {
    // Set before any completing thread can read it.
    stream_ = &stream;
    state_ = State::coming;
    if (stream.notify_held(*this)) return false;
    met_ = stream.failure_at(stream.submitted());
    woken_ = true;
  }
  if (!woken_.load(std::memory_order_acquire)) return false;
  if (state_ == State::coming) {
    failure = met_;
    if (failure) {
      pending_->skip(failure);
      return true;
    }
    state_ = State::entered;
    woken_ = false;
    if (pending_->enter(&PendingOperation::resume, this)) {
      pending_->start();
      if (!woken_.load(std::memory_order_acquire)) return false;
    }
  }
  failure = pending_->failure();
  return true;
}

void PendingOperation::wake(const Ref<Failure>& failure) noexcept {
  met_ = failure;
  ring(woken_, *stream_);
}

void PendingOperation::resume(void* context) noexcept {
  auto* operation = static_cast<PendingOperation*>(context);
  // A thread that observes the completion elsewhere, for example through a future, must see the point completed at
  // once.
  if (!operation->pending_->failure()) operation->stream_->note_completed(operation->point());
  ring(operation->woken_, *operation->stream_);
}

}  // namespace anabranch::cuda
