#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>

#include "anabranch/kernel/kernel.hpp"
#include "deferred_queue.hpp"
#include "kept_blocks.hpp"
#include "legacy_order.hpp"
#include "probes.hpp"
#include "stand_in.hpp"

namespace anabranch::cuda {

class CudaBackend;

// A stream of the driver. Work goes to the driver at once, unless it comes after an operation that the driver cannot
// see: a gate, a host function, a stream of a device of another kind, or work that another stream holds. Then the
// stream *holds* all later work in software, and the device's poller thread submits it in time. A gate therefore
// occupies no hardware queue, and work after a failure never starts.
class CudaStream final : public Stream {
 public:
  enum class Origin { own, external };
  CudaStream(CudaBackend& backend, LegacyOrder& order, CUstream native, Origin origin);

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;
  CudaBackend& device() const noexcept;
  // The stream to pass to the driver on this thread.
  CUstream native();

  // Submits work to the driver: now, by `submit(CUstream)` with the context current, or later, by the function that
  // `later()` returns.
  template <class Submit, class Later>
  Point enqueue(Submit&& submit, Later&& later) {
    if (direct() || rejoined()) [[likely]] {
      const ContextScope scope(context());
      submit(native());
      return direct_point();
    }
    return hold(std::make_unique<WorkOperation>(later()));
  }
  Point suspend(Ref<HostOperation> pending);
  Point wait(Stream& target, Point point, Marker* marker);
  Point record();
  Point record(const EventOptions& options, Ref<Marker>& marker);
  Point newest() noexcept { return holding() ? issued() : direct_point(); }

  // Throws AsyncError if the stream failed at or before the point; DriverError.
  bool query(Point point, CudaMarker* marker);
  bool notify(Point point, CudaMarker* marker, Waiter& waiter);
  // The same for everything that the first held operation comes after. Poller thread only.
  bool notify_held(Waiter& waiter);
  // Do for the held operation at `point` what `mark` and `light_point` do for a direct one. Poller thread only.
  void mark_held(Point point);
  void mark_light_held(Point point) {
    if (!legacy_.is_legacy()) mark_held(point);
  }
  // Whether memory used here may be freed in stream order, without further conditions.
  bool takes_frees() const noexcept { return direct() && origin_ == Origin::own && stand_in_.own_thread(); }
  // A cache of small blocks freed here, for allocations in this stream. External streams, which may be destroyed, keep
  // nothing, nor do any under a tool that checks accesses to freed memory.
  Block take_kept(std::size_t bytes) noexcept { return keeps_blocks_ ? kept_.take(bytes) : Block{}; }
  Block keep(Block block) noexcept { return keeps_blocks_ ? kept_.put(block) : block; }
  // Frees all kept blocks through the driver. For a per-thread stream, only on its own thread.
  void free_kept() noexcept;
  std::size_t kept_bytes() const noexcept { return kept_.bytes(); }
  // Frees memory that only this stream used as a held operation, if the stream holds. Returns whether it does.
  bool free_in_turn(CUdeviceptr pointer) noexcept;
  // The driver has everything up to this point.
  Point submitted() const noexcept {
    // Read first: a point that another thread issues for held work after this check must not be included.
    const Point newest = issued();
    return holding() ? deferred_.submitted() : newest;
  }
  // Makes `follower`, a stream of the driver on any GPU, wait for a submitted point. Requires that the follower's
  // context is current, because the handles of default streams refer to the current one.
  void lead(CudaBackend& current, CUstream follower, Point point, CudaMarker* marker);
  // The failure that a wait for the point gets, or null.
  Ref<Failure> failure_at(Point point) const;
  bool may_have_failed() const noexcept override;
  // Whether the point is submitted. If not, `follower` becomes ready once it is.
  bool when_submitted(Point point, CudaStream& follower);
  // An event that covers a submitted point.
  Ref<CudaMarker> cover(Point point);
  // An event at the stream's end, as seen from this thread.
  Ref<CudaMarker> record_end();
  void note_completed(Point point) noexcept;
  bool known_completed(Point point) const noexcept {
    return completed_.load(std::memory_order_acquire) >= point && !failure_at(point);
  }
  // Whether everything enqueued here is known to be completed.
  bool idle() const noexcept { return completed_.load(std::memory_order_acquire) >= issued(); }
  // Remembers the kernel, for a message if the device fails, and keeps it until the next one.
  void note_kernel(Kernel& kernel) noexcept;
  Ref<Kernel> take_kernel() noexcept;

  // Submits held work as far as possible. Poller thread only.
  void advance() noexcept;

 private:
  friend class CudaBackend;
  static constexpr Point never = std::numeric_limits<Point>::max();
  // Why an operation cannot go directly to the driver.
  enum Special : unsigned {
    held_bit = 1,
    failed_bit = 2,
    rejoin_bit = 4,  // a per-thread stream whose held work went to a stand-in
  };

  void dispose() noexcept override;
  CUcontext context() const noexcept;
  bool direct() const noexcept { return special_.load(std::memory_order_acquire) == 0 && legacy_.clear(); }
  bool holding() const noexcept { return special_.load(std::memory_order_acquire) & held_bit; }
  Point next_point() noexcept { return issued_.fetch_add(1) + 1; }
  // The point of an operation that went directly to the driver.
  Point direct_point() noexcept {
    const Point point = next_point();
    // Either this sees that another thread began to hold meanwhile, or that thread sees the point.
    if (special_.load() & held_bit) [[unlikely]] {
      note_direct(point);
    }
    return point;
  }
  // The point of an operation without a driver call.
  Point mark();
  // The point of a record or a wait that the driver has.
  Point light_point();
  bool marks_reached(Point point, Point newest);
  void note_direct(Point point) noexcept;
  // Requires the mutex.
  void add_direct(Point point);
  // Called for a stream that is created, or taken from those that nothing refers to; and when nothing does any more.
  void open(StreamOptions options) noexcept;
  void close() noexcept;
  Point hold(std::unique_ptr<Operation> operation);
  void end_holding() noexcept;
  // Requires the mutex. Gives a per-thread stream back to its owner, if that only waits for its next operation.
  void rejoin();
  // Whether only that kept the stream from the driver.
  bool rejoined();
  void finish(Ref<Failure> failure) noexcept;
  // Whether the driver's stream contains all of this one, as seen from this thread.
  bool sees_end() const noexcept;
  bool native_reached(Point point);
  bool reached(const CudaMarker& marker);
  Ref<CudaMarker> put_event(CUstream native);
  Ref<CudaMarker> keep_probe(Probes::Probe probe);

  const Origin origin_;
  const CUstream native_;
  CUcontext marks_context_ = nullptr;  // the context that records and waits need, or null
  std::atomic<unsigned> special_{0};
  std::atomic<Point> completed_{0};
  std::atomic<Kernel*> last_kernel_{nullptr};
  Point opened_at_ = 0;
  bool ended_ = false;  // unreferenced with its end noted, then found with work left
  bool keeps_blocks_ = false;
  KeptBlocks kept_;
  LeadEvent lead_;

  mutable std::mutex mutex_;  // of what follows
  Probes probes_;
  DeferredQueue deferred_;
  LegacyPlace legacy_;
  StandIn stand_in_;
  std::atomic<Point> failed_at_{never};
  Ref<Failure> failure_;
};

// Requires a stream of a device of this kind.
inline CudaStream& as_own(Stream& stream) noexcept { return static_cast<CudaStream&>(stream); }
// Null for a stream of a device of another kind.
CudaStream* as_cuda(Stream& stream) noexcept;

}  // namespace anabranch::cuda
