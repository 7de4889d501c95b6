#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "anabranch/kernel.hpp"
#include "anabranch/lock.hpp"
#include "event.hpp"
#include "kept_blocks.hpp"
#include "operation.hpp"

namespace anabranch::cuda {

class CudaBackend;

// The order between the legacy stream and the blocking streams of a device is the driver's, in the order in which it
// gets their work. What streams hold back it does not know of; that is put in order here. Lock order: a stream's mutex,
// then this one.
struct LegacyOrder {
  std::atomic<int> legacy_held{0};
  std::atomic<int> blocking_held{0};
  std::mutex mutex;
  std::vector<CudaStream*> held;  // the blocking ones
  CudaStream* legacy = nullptr;
};

// A stream of the driver's. Work goes to the driver at once, unless it comes after something that is not the driver's:
// a gate, a host function, a stream of another kind of device, or a stream that itself holds work back. Then the stream
// *holds* what follows, and the device's poller thread hands it on in time. So a gate takes no queue of the
// hardware's, and work behind a failure is never started.
class CudaStream final : public Stream {
 public:
  enum class Origin { own, external };
  CudaStream(CudaBackend& backend, LegacyOrder& order, CUstream native, Origin origin);

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;
  CudaBackend& device() const noexcept;
  // What to name to the driver on this thread.
  CUstream native();

  // Hands work to the driver now, by `submit(CUstream)` with the context current, or later, by the function that
  // `later()` makes.
  template <class Submit, class Later>
  Point enqueue(Submit&& submit, Later&& later) {
    if (direct() || rejoined()) [[likely]] {
      const ContextScope scope(context());
      submit(native());
      return direct_point();
    }
    return hold(std::make_unique<WorkOperation>(later()));
  }
  Point suspend(Ref<Pending> pending);
  Point wait(Stream& target, Point point, Marker* marker);
  Point record();
  Point record(const EventOptions& options, Ref<Marker>& marker);
  Point newest() noexcept { return holding() ? issued() : direct_point(); }

  // Throws AsyncError if the stream failed at or before the point, DriverError.
  bool query(Point point, CudaMarker* marker);
  bool notify(Point point, CudaMarker* marker, Waiter& waiter);
  // The same for all that the first of the held operations comes after. On the poller thread only.
  bool notify_held(Waiter& waiter);
  // Gives the driver what `mark` does for that operation, and what `light_point` does. On the poller thread only.
  void mark_held(Point point);
  void mark_light_held(Point point) {
    if (this != order_.legacy) mark_held(point);
  }
  // Whether memory that was used here may be given back in stream order, with no more ado.
  bool takes_frees() const noexcept { return direct() && origin_ == Origin::own && own_thread(); }
  // Small memory that is freed here, for what takes it here. Nothing is kept of somebody else's stream, which may be
  // gone, and where a tool looks for accesses to what was freed.
  Block take_kept(std::size_t bytes) noexcept { return keeps_blocks_ ? kept_.take(bytes) : Block{}; }
  Block keep(Block block) noexcept { return keeps_blocks_ ? kept_.put(block) : block; }
  // Gives all of that to the driver. Of a per-thread stream on its own thread alone.
  void free_kept() noexcept;
  std::size_t kept_bytes() const noexcept { return kept_.bytes(); }
  // Gives memory that was used here alone back in its turn, if the stream holds; whether it does.
  bool free_in_turn(CUdeviceptr pointer) noexcept;
  // The points up to this one are the driver's to reach.
  Point submitted() const noexcept {
    // Read first: a point that another thread issues for what it holds, once this was seen not to hold, is not among
    // them.
    const Point newest = issued();
    return holding() ? submitted_.load(std::memory_order_acquire) : newest;
  }
  // Lets `follower`, a stream of the driver's on any GPU, wait for a point that is submitted. The follower's context
  // must be the current one, since the handles of default streams mean that one's.
  void lead(CudaBackend& current, CUstream follower, Point point, CudaMarker* marker);
  // The failure that whoever waits for the point meets.
  Ref<Failure> failure_at(Point point) const;
  // Whether the point is submitted; else `follower` is made ready once it is.
  bool when_submitted(Point point, CudaStream& follower);
  // An event that covers a point which is submitted.
  Ref<CudaMarker> cover(Point point);
  void note_completed(Point point) noexcept;
  bool known_over(Point point) const noexcept {
    return completed_.load(std::memory_order_acquire) >= point && !failure_at(point);
  }
  // Whether all that was put in through here is known to be complete.
  bool idle() const noexcept { return completed_.load(std::memory_order_acquire) >= issued(); }
  // Remembers the kernel, for a fault that may come, and keeps it until the next one.
  void note_kernel(Kernel& kernel) noexcept;
  Ref<Kernel> take_kernel() noexcept;

  // Goes on with what is held, as far as it can. On the poller thread only.
  void advance() noexcept;

 private:
  friend class CudaBackend;
  static constexpr Point never = std::numeric_limits<Point>::max();
  // Why an operation cannot go straight to the driver.
  enum Special : unsigned {
    held_bit = 1,
    failed_bit = 2,
    rejoin_bit = 4,  // a per-thread stream whose held work went to a stand-in
  };

  struct Follower {
    Point point;
    Ref<CudaStream> stream;
  };

  struct Probe {
    Point point;
    Ref<CudaMarker> marker;
    Point marks = 0;  // the first point that is not over before the event is; 0: that is not said
  };

  void dispose() noexcept override;
  CUcontext context() const noexcept;
  bool direct() const noexcept {
    return special_.load(std::memory_order_acquire) == 0 && other_held_->load(std::memory_order_acquire) == 0;
  }
  bool holding() const noexcept { return special_.load(std::memory_order_acquire) & held_bit; }
  Point next_point() noexcept { return issued_.fetch_add(1) + 1; }
  // The point of what went straight to the driver.
  Point direct_point() noexcept {
    const Point point = next_point();
    // Either this sees that another thread began to hold meanwhile, or that one sees the point.
    if (special_.load() & held_bit) [[unlikely]] {
      note_direct(point);
    }
    return point;
  }
  // The point of what is nothing to the driver.
  Point mark();
  // The point of a record or a wait that the driver was given.
  Point light_point();
  bool marks_reached(Point point, Point newest);
  void note_direct(Point point) noexcept;
  void add_direct(Point point) noexcept;
  void open(StreamOptions options) noexcept;
  bool own_thread() const noexcept;
  Point hold(std::unique_ptr<Operation> operation);
  void add_legacy_waits();
  void begin_holding();
  void end_holding() noexcept;
  void enter_order();
  void leave_order() noexcept;
  void rejoin();
  bool rejoined();
  void finish(Ref<Failure> failure) noexcept;
  std::vector<Follower> submit_up_to(Point point) noexcept;
  static void wake(const std::vector<Follower>& ready) noexcept;
  // Whether the driver's stream holds all of this one, seen from this thread.
  bool sees_end() const noexcept;
  bool native_reached(Point point);
  bool reached(const CudaMarker& marker);
  Ref<CudaMarker> record_end();
  Ref<CudaMarker> put_event(CUstream native);
  const Ref<CudaMarker>& keep_probe(Probe probe);

  LegacyOrder& order_;
  const Origin origin_;
  const CUstream native_;
  CUcontext marks_context_ = nullptr;  // the one to be current for records and waits, if any
  std::uint64_t owner_ = 0;            // the thread of a per-thread stream
  const std::atomic<int>* other_held_ =
      nullptr;  // how many streams are held that this one's next operation comes after

  std::atomic<unsigned> special_{0};
  std::atomic<Point> completed_{0};
  std::atomic<Point> submitted_{0};
  std::atomic<Point> failed_at_{never};
  std::atomic<Kernel*> last_kernel_{nullptr};
  Point opened_at_ = 0;
  std::atomic<Point> marked_legacy_{0};  // the legacy stream's newest point at the last mark
  bool ended_ = false;                   // nobody held it, and its end was noted, before it was found to have work left

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Operation>> queue_;
  bool keeps_blocks_ = false;
  KeptBlocks kept_;
  SpinLock lead_lock_;
  Ref<CudaMarker> lead_;       // what others wait for
  Point lead_point_ = 0;       // the point that it covers
  std::vector<Probe> probes_;  // events at the stream's end of some time, by their points
  std::vector<Follower> followers_;
  Ref<Failure> failure_;
  // Guarded by the legacy order's mutex.
  Point of_legacy_ = 0;    // of the legacy stream: what this blocking stream waits for already
  Point for_legacy_ = 0;   // of this blocking stream: what the legacy stream waits for already
  bool in_order_ = false;  // listed there
  Ref<CudaStream> stand_in_;
  Ref<CudaMarker> rejoin_;
};

// The per-thread streams of a thread, which waits for their work when it ends. The driver ends its streams next, and
// where memory was allocated or freed in one that had work left, the end of the thread has hung in the driver (580).
struct OwnStreams {
  ~OwnStreams();
  std::unordered_map<CudaBackend*, Ref<CudaStream>> streams;
};

// Null for a stream of another kind of device.
CudaStream* as_cuda(Stream& stream) noexcept;

}  // namespace anabranch::cuda
