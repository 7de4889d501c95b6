#include "backend.hpp"

#include <algorithm>
#include <condition_variable>
#include <string>
#include <unordered_map>

#include "graph.hpp"
#include "task.hpp"

namespace anabranch::cpu {
namespace {

CpuStream& as_cpu(Stream& stream) noexcept { return static_cast<CpuStream&>(stream); }

// A host thread that blocks until a point is reached.
class HostWaiter final : public Waiter {
 public:
  void wake(const Ref<Failure>&) noexcept override {
    // Signalled under the lock, since the waiting thread destroys this as soon as it sees the flag.
    std::lock_guard lock(mutex_);
    woken_ = true;
    signal_.notify_one();
  }
  bool wait(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    // A time-out that means for ever must not overflow the clock.
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

CpuBackend::CpuBackend(int index, int workers, std::size_t memory, HostSource pinned)
    : pool_("anabranch-cpu" + std::to_string(index), workers),
      memory_("cpu:" + std::to_string(index), memory),
      pinned_("cpu:" + std::to_string(index), memory, pinned) {
  capabilities_.kind = "cpu";
  capabilities_.index = index;
  capabilities_.name =
      "CPU " + std::to_string(index) + " (" + std::to_string(workers) + (workers == 1 ? " worker)" : " workers)");
  capabilities_.total_memory = memory;
  capabilities_.lowest_priority = 0;
  capabilities_.highest_priority = -1;
  capabilities_.workers = workers;
  capabilities_.host_memory = true;
  legacy_ = open({.non_blocking = false, .role = StreamRole::legacy, .name = "legacy"});
  order_.legacy = legacy_.get();
}

Ref<CpuStream> CpuBackend::open(StreamOptions options) {
  options.priority = std::clamp(options.priority, capabilities_.highest_priority, capabilities_.lowest_priority);
  std::unique_lock lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_unique<CpuStream>(*this, pool_, order_));
    all_.back()->open(std::move(options));
    return Ref<CpuStream>::take(all_.back().get());
  }
  CpuStream* stream = idle_.back();
  idle_.pop_back();
  stream->open(std::move(options));
  stream->revive();
  return Ref<CpuStream>::take(stream);
}

// Nothing refers to the stream any more, so nothing of what it held can be asked for.
void CpuBackend::recycle(CpuStream& stream) noexcept {
  note_end(stream);
  legacy_lanes().leave(stream);
  stream.legacy_seen_ = 0;
  stream.fresh_ = false;
  stream.failure_.reset();
  stream.failed_at_.store(CpuStream::never, std::memory_order_relaxed);
  stream.operations_.store(0, std::memory_order_relaxed);
  stream.busy_.store(0, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  idle_.push_back(&stream);
}

Ref<Stream> CpuBackend::create_stream(StreamOptions options) { return open(std::move(options)); }

Ref<Stream> CpuBackend::default_stream(StreamRole role) {
  if (role == StreamRole::legacy) return legacy_;
  thread_local std::unordered_map<CpuBackend*, Ref<CpuStream>> own;
  Ref<CpuStream>& stream = own[this];
  if (!stream) stream = open({.non_blocking = false, .role = StreamRole::per_thread, .name = "per-thread"});
  return stream;
}

Ref<Stream> CpuBackend::find_stream(std::uintptr_t handle) {
  if (handle == 1) return default_stream(StreamRole::legacy);
  if (handle == 2) return default_stream(StreamRole::per_thread);
  std::lock_guard lock(mutex_);
  for (const auto& stream : all_) {
    if (reinterpret_cast<std::uintptr_t>(stream.get()) == handle && stream->try_retain())
      return Ref<Stream>::take(stream.get());
  }
  throw Error(ErrorKind::value,
              "no stream of cpu:" + std::to_string(capabilities_.index) + " has the handle " + std::to_string(handle));
}

std::vector<Ref<Stream>> CpuBackend::streams() {
  std::vector<Ref<Stream>> living;
  std::lock_guard lock(mutex_);
  for (const auto& stream : all_) {
    if (stream->try_retain()) living.push_back(Ref<Stream>::take(stream.get()));
  }
  return living;
}

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
  if (other->passed(point)) return as_cpu(stream).mark();
  return as_cpu(stream).push(std::make_unique<WaitTask>(*other, point));
}

bool CpuBackend::query(Stream& stream, Point point, Marker*) {
  Ref<Failure> failure;
  const bool reached = as_cpu(stream).reached(point, &failure);
  if (failure) throw AsyncError(std::move(failure));
  return reached;
}

bool CpuBackend::synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker*) {
  if (query(stream, point)) return true;
  HostWaiter waiter;
  if (as_cpu(stream).add_waiter(waiter, point) && !waiter.wait(timeout)) {
    if (!as_cpu(stream).remove_waiter(waiter)) waiter.wait();
  }
  return query(stream, point);
}

bool CpuBackend::notify(Stream& stream, Point point, Waiter& waiter, Marker*) {
  return as_cpu(stream).add_waiter(waiter, point);
}

Allocation CpuBackend::allocate(Stream* stream, std::size_t bytes, MemoryKind kind) {
  return memory_of(kind).allocate(stream, bytes);
}

void CpuBackend::free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept {
  memory_of(kind).free(pointer, bytes, std::move(uses));
}

std::size_t CpuBackend::free_memory() {
  return std::min(memory_.available(), capabilities_.total_memory - pinned_.used());
}

Point CpuBackend::copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) {
  return as_cpu(stream).push(make_copy_task(dst, src, count));
}

Point CpuBackend::fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) {
  return as_cpu(stream).push(make_fill_task(dst, value, count));
}

Point CpuBackend::launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                         std::span<const std::uint64_t> arguments) {
  return as_cpu(stream).push(make_kernel_task(kernel, shape, arguments), &kernel);
}

Point CpuBackend::launch_grid(Stream&, Kernel& kernel, const LaunchGrid&, std::span<const std::uint64_t>) {
  refuse_blocks(kernel);
}

void CpuBackend::refuse_blocks(const Kernel& kernel) const {
  throw Error(ErrorKind::device,
              "kernel '" + kernel.name + "' is launched with blocks, which " + capabilities_.name + " does not have");
}

Point CpuBackend::suspend(Stream& stream, Ref<Pending> pending) {
  return as_cpu(stream).push(std::make_unique<PendingTask>(std::move(pending)));
}

Ref<Library> CpuBackend::load_library(std::span<const std::byte>) {
  throw Error(ErrorKind::device, "cpu:" + std::to_string(capabilities_.index) + " runs no compiled GPU code");
}

Ref<Executable> CpuBackend::instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
  return CpuExecutable::make(graph, works);
}

Ref<Span> CpuBackend::open_span(Stream& stream) {
  auto span = make_ref<Span>();
  CpuStream::measure(&as_cpu(stream), span.get());
  return span;
}

// What enqueued nothing, as a record or a wait for what is over, is where the stream is in its work.
void CpuBackend::close_span(Stream& stream, Span& span) {
  if (span.unique() && span.end.load() == 0) as_cpu(stream).push(std::make_unique<MarkTask>());
  CpuStream::measure(nullptr, nullptr);
}

void CpuBackend::stop() noexcept { pool_.stop(std::chrono::seconds(5)); }

}  // namespace anabranch::cpu
