#include "task.hpp"

#include <algorithm>
#include <cstring>

#include "explore/controller.hpp"
#include "range.hpp"

namespace anabranch::cpu {

Step WaitTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  if (!target_->reached(until_)) {
    stream_ = &stream;
    stream.rest();
    if (target_->add_waiter(*this, until_)) return Step::parked;
  }
  target_->reached(until_, &failure);
  return Step::done;
}

Step OtherWaitTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  stream_ = &stream;
  stream.rest();
  Backend& backend = target_->backend();
  try {
    if (backend.notify(*target_, until_, *this, marker_.get())) return Step::parked;
    backend.query(*target_, until_, marker_.get());
  } catch (const AsyncError& error) {
    failure = error.failure();
  } catch (const DriverError& error) {
    failure = make_ref<Failure>(error);
  } catch (const std::exception& error) {
    failure = make_ref<Failure>(error.what());
  }
  return Step::done;
}

Step PendingTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  // Kept here: after `enter` the operation may complete, and the task be deleted, before `start` is called.
  const Ref<HostOperation> pending = pending_;
  stream_ = &stream;
  if (pending->enter(&PendingTask::resume, this)) {
    if (explore::Controller* const controller = stream.pool().controller()) controller->calling(stream.runnable());
    pending->start();
    return Step::parked;
  }
  failure = pending->failure();
  return Step::done;
}

void PendingTask::resume(void* context) noexcept {
  auto* task = static_cast<PendingTask*>(context);
  // The next function can follow on this thread, as the thread that has run this one takes what it posts.
  task->stream_->complete(task->pending_->failure(), task->pending_->calls());
}

namespace {

// A task that runs a range of indices.
class RangeTask : public Task, private RangeOwner {
 public:
  Step start(CpuStream& stream, Ref<Failure>& failure) noexcept final {
    stream_ = &stream;
    return run_range(range(), stream.pool(), stream.priority() < 0, *this, failure);
  }
  void rehearse(CpuStream& stream) noexcept final {
    Ref<Failure> failure;  // which the kernel meets again when it runs
    run_range(range(), stream.pool(), false, *this, failure);
  }

 private:
  virtual Range range() const noexcept = 0;
  void range_over(Ref<Failure> failure) noexcept final {
    note_end();
    stream_->resume(std::move(failure));
  }

  CpuStream* stream_ = nullptr;
};

class KernelTask final : public RangeTask {
 public:
  KernelTask(Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments)
      : kernel_(kernel), shape_(shape), slots_(arguments.size()) {
    std::copy(arguments.begin(), arguments.end(), slots());  // not memcpy: the address of zero arguments may be null
  }
  static void* operator new(std::size_t size, std::size_t slots) {
    return take_task_memory(size + slots * sizeof(std::uint64_t));
  }
  static void operator delete(void* memory) noexcept { give_task_memory(memory); }
  static void operator delete(void* memory, std::size_t) noexcept { give_task_memory(memory); }

 private:
  std::uint64_t* slots() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  Range range() const noexcept override {
    return kernel_range(kernel_, shape_, {reinterpret_cast<const std::uint64_t*>(this + 1), slots_});
  }

  explore::Description describe() const override { return {"kernel '" + kernel_.name + "'", true}; }

  const Kernel& kernel_;  // the stream keeps it
  LaunchShape shape_;
  const std::size_t slots_;
};

class CopyTask final : public RangeTask {
 public:
  CopyTask(const Elements& dst, const Elements& src, std::int64_t count) : copy_{dst, src, count} {}

 private:
  Range range() const noexcept override { return copy_range(copy_); }
  explore::Description describe() const override { return {"copy"}; }
  CopyWork copy_;
};

class FillTask final : public RangeTask {
 public:
  FillTask(const Elements& dst, const void* value, std::int64_t count) : fill_{dst, {}, count} {
    std::memcpy(fill_.value, value, static_cast<std::size_t>(dst.layout.itemsize));
  }

 private:
  Range range() const noexcept override { return fill_range(fill_); }
  explore::Description describe() const override { return {"fill"}; }
  FillWork fill_;
};

}  // namespace

std::unique_ptr<Task> make_kernel_task(Kernel& kernel, const LaunchShape& shape,
                                       std::span<const std::uint64_t> arguments) {
  return std::unique_ptr<Task>(new (arguments.size()) KernelTask(kernel, shape, arguments));
}

std::unique_ptr<Task> make_copy_task(const Elements& dst, const Elements& src, std::int64_t count) {
  return std::make_unique<CopyTask>(dst, src, count);
}

std::unique_ptr<Task> make_fill_task(const Elements& dst, const void* value, std::int64_t count) {
  return std::make_unique<FillTask>(dst, value, count);
}

}  // namespace anabranch::cpu
