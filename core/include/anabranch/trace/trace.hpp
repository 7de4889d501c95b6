#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "anabranch/hazard/history.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/event.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

// Nanoseconds of the host's steady clock, the time base of traces.
std::int64_t now_nanoseconds() noexcept;

// The time span of an operation. Its device creates and measures it.
class Span : public RefCounted {
 public:
  // Reads the times as far as they are known by now.
  virtual void read_times() {}

  std::uint64_t number = 0;            // unique, for a device with its own way to measure; else 0
  std::atomic<std::int64_t> begin{0};  // 0: unknown
  std::atomic<std::int64_t> end{0};
};

enum class OperationKind : std::uint8_t {
  kernel,
  copy,
  fill,
  alloc,
  free,
  host,
  graph,
  record,
  wait,
  compile,
  collective,
};

// One operation in a trace.
struct TracedOperation {
  OperationKind kind = OperationKind::kernel;
  bool added = false;  // for a wait: hazards added it
  Backend* backend = nullptr;
  Ref<Stream> stream = nullptr;  // null: the memory belongs to no stream
  Point point = 0;               // of the operation; 0: it is not in stream order
  Point closed = 0;              // the point that ends the measurement
  Ref<Stream> source = nullptr;  // the stream that a wait waits for
  Point source_point = 0;
  std::size_t bytes = 0;
  Ref<Span> span = nullptr;
  Site site = {};
  std::string name = {};  // empty: the kind is the name
};

// Collects what all threads enqueue while the trace is on. Any thread may call any member.
class Trace final : public RefCounted {
 public:
  // Runs on any thread, with no lock held. Takes the lock of the list of traces; afterwards nobody publishes to this
  // trace.
  ~Trace() override { stop(); }
  // A second call of either has no effect.
  void start();
  void stop();
  // The time of the first start; 0 before.
  std::int64_t began() const noexcept { return began_.load(); }
  // The operations so far, in the order in which they were enqueued.
  std::vector<TracedOperation> operations() const;

 private:
  friend void publish(TracedOperation operation);
  friend std::vector<TracedOperation> traced_after(const Stream& stream, Point point);
  mutable std::mutex mutex_;
  std::vector<TracedOperation> operations_;
  std::atomic<std::int64_t> began_{0};
};

// The number of traces that are on, and `exploration` while schedules are explored.
extern std::atomic<int> traces_on;
inline constexpr int exploration = 1 << 30;
inline bool tracing() noexcept { return (traces_on.load(std::memory_order_relaxed) & ~exploration) != 0; }
inline bool exploring() noexcept { return (traces_on.load(std::memory_order_relaxed) & exploration) != 0; }
// Either of the two.
inline bool observing() noexcept { return traces_on.load(std::memory_order_relaxed) != 0; }

// The stream's operations after the point, in order, as far as a trace that is still on has recorded them.
std::vector<TracedOperation> traced_after(const Stream& stream, Point point);

// Returns the current site of the layer above on this thread; null until that layer is loaded.
extern std::atomic<Site (*)()> calling_site;

// Called with the number of what this thread enqueues from now on, and with 0 when that is done; may be null.
extern std::atomic<void (*)(std::uint64_t number)> correlate;

// Call these around everything that is enqueued while `tracing`. What this thread enqueues in between is one operation.
// Opening twice discards the first. Both throw what `Backend::record` throws.
void open_operation(Stream& stream);
// Closes what `open_operation` opened. The caller sets all of `operation` except span, site and backend.
void close_operation(Stream& stream, TracedOperation operation);
// Records something that the host does now, without a time in a stream.
void trace_instant(Backend& backend, TracedOperation operation);
// Records something that the host has done since a time of `now_nanoseconds`.
void trace_host(Backend& backend, TracedOperation operation, std::int64_t since);

// `Backend::wait` while `tracing`.
Point trace_wait(Stream& stream, Stream& target, Point point, Marker* marker, bool added);
// The same, for a wait added within this thread's open operation. The operation then begins after the wait and reports
// it when closed. Calls nothing of the layer above, so the caller may hold a lock.
void trace_inner_wait(Stream& stream, Stream& target, Point point);

}  // namespace anabranch
