#pragma once

#include <atomic>
#include <functional>

#include "anabranch/stream/host.hpp"
#include "event.hpp"

namespace anabranch::cuda {

class CudaStream;

// An operation that a stream holds. The poller thread calls `step` when the driver has everything before it, and again
// each time the stream becomes ready; it may throw.
class Operation {
 public:
  virtual ~Operation() = default;
  Point point() const noexcept { return point_; }
  // Returns whether the driver has the operation, or it is completed; then sets `failure` if it failed. Otherwise, has
  // arranged for the stream to become ready when there is progress.
  virtual bool step(CudaStream& stream, Ref<Failure>& failure) = 0;
  // Called instead of `step` in a stream that has failed.
  virtual void skip(const Ref<Failure>&) noexcept {}
  // Whether all earlier work is completed once `step` has returned true.
  virtual bool completes() const noexcept { return false; }

 private:
  friend class DeferredQueue;
  Point point_ = 0;  // 0: a wait added for the legacy stream's order
};

// Occupies a point.
class MarkOperation final : public Operation {
 public:
  bool step(CudaStream& stream, Ref<Failure>& failure) override;
};

class WorkOperation final : public Operation {
 public:
  explicit WorkOperation(std::function<void(CUstream)> submit) : submit_(std::move(submit)) {}
  bool step(CudaStream& stream, Ref<Failure>& failure) override;

 private:
  std::function<void(CUstream)> submit_;
};

// Frees memory in stream order, also in a failed stream, after the work that it had begun.
class FreeOperation final : public Operation {
 public:
  FreeOperation(CudaStream& stream, CUdeviceptr pointer) : stream_(stream), pointer_(pointer) {}
  bool step(CudaStream& stream, Ref<Failure>& failure) override;
  void skip(const Ref<Failure>& failure) noexcept override;

 private:
  CudaStream& stream_;
  CUdeviceptr pointer_;
};

class RecordOperation final : public Operation {
 public:
  explicit RecordOperation(Ref<CudaMarker> marker) : marker_(std::move(marker)) {}
  bool step(CudaStream& stream, Ref<Failure>& failure) override;

 private:
  Ref<CudaMarker> marker_;
};

class WaitOperation final : public Operation, private Waiter {
 public:
  WaitOperation(Stream& target, Point point, Marker* marker)
      : target_(Ref<Stream>::share(&target)), until_(point), marker_(Ref<Marker>::share(marker)) {}
  bool step(CudaStream& stream, Ref<Failure>& failure) override;

 private:
  bool step_beside(CudaStream& stream, Ref<Failure>& failure);
  void wake(const Ref<Failure>& failure) noexcept override;

  Ref<Stream> target_;
  Point until_;
  Ref<Marker> marker_;
  bool asked_ = false;
  CudaStream* stream_ = nullptr;
  Ref<Failure> met_;
  std::atomic<bool> woken_{false};
};

class PendingOperation final : public Operation, private Waiter {
 public:
  explicit PendingOperation(Ref<HostOperation> pending) : pending_(std::move(pending)) {}
  bool step(CudaStream& stream, Ref<Failure>& failure) override;
  void skip(const Ref<Failure>& failure) noexcept override { pending_->skip(failure); }
  bool completes() const noexcept override { return true; }

 private:
  enum class State { fresh, coming, entered };
  void wake(const Ref<Failure>& failure) noexcept override;
  static void resume(void* context) noexcept;

  Ref<HostOperation> pending_;
  State state_ = State::fresh;
  CudaStream* stream_ = nullptr;
  Ref<Failure> met_;
  std::atomic<bool> woken_{false};
};

}  // namespace anabranch::cuda
