// The verbs of "order" in `Backend`.
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "anabranch/stream/host.hpp"
#include "backend.hpp"
#include "explore/controller.hpp"
#include "task.hpp"

namespace anabranch::cpu {
namespace {

// Help is left out where the host may wait for a shorter time.
constexpr auto longest_help = std::chrono::milliseconds(1);

struct Awaited {
  const CpuStream& stream;
  Point point;
  bool reached() const noexcept { return stream.reached(point); }
};

// Blocks a host thread until a point is reached.
class HostWaiter final : public Waiter {
 public:
  void wake(const Ref<Failure>&) noexcept override {
    // Signals under the lock, because the waiting thread destroys this as soon as it sees the flag.
    std::lock_guard lock(mutex_);
    woken_ = true;
    signal_.notify_one();
  }
  bool wait(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    // A timeout that stands for forever must not overflow the clock.
    const auto limit = std::min<std::chrono::nanoseconds>(timeout, std::chrono::years(1));
    return signal_.wait_for(lock, limit, [this] { return woken_; });
  }
  void wait() {
    std::unique_lock lock(mutex_);
    signal_.wait(lock, [this] { return woken_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  bool woken_ = false;
};

}  // namespace

std::vector<Record> CpuBackend::frontier(Stream& stream) { return as_cpu(stream).frontier(); }

Point CpuBackend::record(Stream& stream) { return as_cpu(stream).mark(); }

Point CpuBackend::record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) {
  if (!options.timing) return as_cpu(stream).mark();
  auto stamp = make_ref<Timestamp>();
  const Point point = as_cpu(stream).push(std::make_unique<StampTask>(stamp.get()));
  marker = std::move(stamp);
  return point;
}

std::optional<double> CpuBackend::elapsed(const Record& begin, const Record& end) {
  const auto* first = static_cast<const Timestamp*>(begin.marker.get());
  const auto* last = dynamic_cast<const Timestamp*>(end.marker.get());
  if (!last)
    throw Error(ErrorKind::event, "the end event is not of a CPU device, and two devices have no clock in common");
  for (const Record* record : {&begin, &end}) {
    if (!query(*record->stream, record->point)) return std::nullopt;
  }
  return static_cast<double>(last->nanoseconds.load() - first->nanoseconds.load()) * 1e-6;
}

Point CpuBackend::wait(Stream& stream, Stream& target, Point point, Marker* marker) {
  if (&stream == &target) return stream.issued();
  CpuStream* other = &target.backend() == this ? &as_cpu(target) : dynamic_cast<CpuStream*>(&target);
  if (!other) return as_cpu(stream).push(std::make_unique<OtherWaitTask>(target, point, marker));
  if (other->over(point)) return as_cpu(stream).mark();
  return as_cpu(stream).push(std::make_unique<WaitTask>(*other, point));
}

bool CpuBackend::query(Stream& stream, Point point, Marker*) {
  Ref<Failure> failure;
  const bool reached = as_cpu(stream).reached(point, &failure);
  if (failure) throw AsyncError(std::move(failure));
  return reached;
}

bool CpuBackend::synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker*) {
  if (explore::Controller* const controller = pool_.controller()) [[unlikely]] {
    const bool reached = controller->synchronize(stream, as_cpu(stream).runnable(), point, timeout);
    return reached && query(stream, point);
  }
  if (query(stream, point)) return true;
  if (const HostHelp help = host_help().load(std::memory_order_acquire); help && timeout > longest_help) {
    Awaited awaited{as_cpu(stream), point};
    help([](void* context) noexcept { return static_cast<Awaited*>(context)->reached(); }, &awaited);
    if (query(stream, point)) return true;
  }
  HostWaiter waiter;
  if (as_cpu(stream).add_waiter(waiter, point) && !waiter.wait(timeout)) {
    if (!as_cpu(stream).remove_waiter(waiter)) waiter.wait();
  }
  return query(stream, point);
}

bool CpuBackend::notify(Stream& stream, Point point, Waiter& waiter, Marker*) {
  return as_cpu(stream).add_waiter(waiter, point);
}

}  // namespace anabranch::cpu
