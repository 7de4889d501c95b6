// The part of exploration that is of this device: streams run one operation at a time, when the controller says so.
#include "backend.hpp"
#include "explore/controller.hpp"
#include "task.hpp"

namespace anabranch::cpu {

void CpuBackend::control(explore::Controller* controller) {
  std::vector<Held> held;
  std::vector<Ref<CpuStream>> opened;  // released once there is no run
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stream : all_) {
      if (!controller) stream->forget_failure_after(stream->before_run_);
      stream->before_run_ = stream->issued();
    }
    held.swap(held_);
    opened.swap(opened_);
  }
  pool_.control(controller);
  for (Held& one : held) memory_of(one.kind).free(one.pointer, one.bytes, std::move(one.uses));
}

void CpuBackend::begin_run(CpuStream& stream) {
  if (explore::Controller* const controller = pool_.controller()) [[unlikely]] {
    stream.before_run_ = stream.issued();
    {
      const std::lock_guard lock(mutex_);
      opened_.push_back(Ref<CpuStream>::share(&stream));
    }
    controller->opened(stream, stream.runnable());
  }
}

// Requires that the stream is idle.
void CpuStream::forget_failure_after(Point point) noexcept {
  const Point failed_at = failed_at_.load(std::memory_order_relaxed);
  if (failed_at == never || failed_at <= point) return;
  failed_at_.store(never, std::memory_order_release);
  failure_.reset();
}

bool CpuBackend::known_completed(Stream& stream, Point point) noexcept {
  return static_cast<CpuStream&>(stream).over(point);
}

explore::Readiness CpuStream::readiness() noexcept {
  if (!batch_ && !refill()) return explore::Readiness::idle;
  return awaited() ? explore::Readiness::blocked : explore::Readiness::ready;
}

// The task that the next operation waits with, or null.
const Task* CpuStream::awaited() const noexcept {
  if (failed_at_.load(std::memory_order_relaxed) != never) return nullptr;
  for (const Task* task = batch_;; task = task->next_) {
    if (!task->ready()) return task;
    if (task->counts_) return nullptr;
  }
}

// Returns false if the task has parked.
bool CpuStream::step_once() noexcept {
  current_ = take();
  Ref<Failure> failure;
  if (failed_at_.load(std::memory_order_relaxed) != never) {
    current_->skip(failure_);
  } else if (current_->step(*this, failure) == Step::parked) {
    return false;
  }
  finish(std::move(failure));
  return true;
}

void CpuStream::step() noexcept {
  for (bool counted = false; !counted;) {
    counted = batch_->counts_;
    if (!step_once()) return;
  }
  pool_.ready(*this);
}

bool CpuStream::begin_parts() noexcept {
  while (!batch_->counts_) step_once();  // waits that are over, of which one may fail the stream
  return failed_at_.load(std::memory_order_relaxed) == never && batch_->begin_parts(*this);
}

void CpuStream::rehearse() noexcept {
  Task* task = batch_;
  while (!task->counts_) task = task->next_;
  task->rehearse(*this);
}

bool CpuStream::give_up() noexcept {
  if (!batch_) return false;
  const Task* const task = awaited();
  return task && const_cast<Task*>(task)->give_up();
}

std::string CpuStream::waits_for() noexcept {
  if (!batch_) return "the end of its function";
  const Task* const task = awaited();
  if (!task) return "nothing";
  const explore::Description description = task->describe();
  if (description.gate) return "a gate that nobody opens";
  return description.waits.empty() ? "the nodes of its graph" : description.waits.front().first->name();
}

Ref<Failure> CpuStream::failed() noexcept {
  return failed_at_.load(std::memory_order_relaxed) == never ? nullptr : failure_;
}

}  // namespace anabranch::cpu
