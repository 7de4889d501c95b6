#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "anabranch/backend.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

// Does nothing when the stream reaches it.
class MarkTask final : public Task {
 public:
  Step start(CpuStream&, Ref<Failure>&) noexcept override { return Step::done; }
};

// Stores the time at which the stream reaches it.
class StampTask final : public Task {
 public:
  explicit StampTask(Timestamp* stamp) : stamp_(Ref<Timestamp>::share(stamp)) {}
  Step start(CpuStream&, Ref<Failure>&) noexcept override {
    stamp_->nanoseconds.store(now_nanoseconds());
    return Step::done;
  }

 private:
  Ref<Timestamp> stamp_;
};

// Parks the stream until another stream reaches a point.
class WaitTask final : public Task, private Waiter {
 public:
  WaitTask(CpuStream& target, Point point) : target_(Ref<CpuStream>::share(&target)), until_(point) {}
  Step start(CpuStream& stream, Ref<Failure>& failure) noexcept override;
  bool ready() const noexcept override { return target_->reached(until_); }
  explore::Description describe() const override {
    return {.what = "wait", .explicit_site = true, .waits = {{target_.get(), until_}}, .order = true};
  }

 private:
  void wake(const Ref<Failure>& failure) noexcept override {
    note_end();
    stream_->resume(failure);
  }

  Ref<CpuStream> target_;
  Point until_;
  CpuStream* stream_ = nullptr;
};

// The same for a stream of a device of another kind.
class OtherWaitTask final : public Task, private Waiter {
 public:
  OtherWaitTask(Stream& target, Point point, Marker* marker)
      : target_(Ref<Stream>::share(&target)), until_(point), marker_(Ref<Marker>::share(marker)) {}
  Step start(CpuStream& stream, Ref<Failure>& failure) noexcept override;

 private:
  void wake(const Ref<Failure>& failure) noexcept override {
    note_end();
    stream_->resume(failure);
  }

  Ref<Stream> target_;
  Point until_;
  Ref<Marker> marker_;
  CpuStream* stream_ = nullptr;
};

// Parks the stream until a `HostOperation` is completed.
class PendingTask final : public Task {
 public:
  explicit PendingTask(Ref<HostOperation> pending) : pending_(std::move(pending)) {}
  Step start(CpuStream& stream, Ref<Failure>& failure) noexcept override;
  bool starts_anywhere() const noexcept override { return true; }
  void skip(const Ref<Failure>& failure) noexcept override { pending_->skip(failure); }
  bool ready() const noexcept override { return pending_->calls() || pending_->completed(); }
  explore::Description describe() const override {
    return {pending_->calls() ? "function" : "gate", false, pending_->calls() ? nullptr : pending_.get(), true};
  }
  bool give_up() noexcept override {
    if (ready()) return false;
    pending_->complete();
    return true;
  }

 private:
  static void resume(void* context) noexcept;

  Ref<HostOperation> pending_;
  CpuStream* stream_ = nullptr;
};

// Tasks that run a range of indices, see `run_range`. A kernel task stores its arguments behind itself in the same
// block.
std::unique_ptr<Task> make_kernel_task(Kernel& kernel, const LaunchShape& shape,
                                       std::span<const std::uint64_t> arguments);
std::unique_ptr<Task> make_copy_task(const Elements& dst, const Elements& src, std::int64_t count);
std::unique_ptr<Task> make_fill_task(const Elements& dst, const void* value, std::int64_t count);

}  // namespace anabranch::cpu
