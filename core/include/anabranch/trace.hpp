#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/history.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

// Nanoseconds of the host's steady clock, which everything in a trace is told by.
std::int64_t now_nanoseconds() noexcept;

// When an operation ran. Made and measured by the device that runs it.
class Span : public RefCounted {
 public:
  // Finds the times out, as far as they can be known by now.
  virtual void settle() {}

  std::uint64_t number = 0;            // for those who measure in ways of their own: of no other, 0 if they do not
  std::atomic<std::int64_t> begin{0};  // 0: not known
  std::atomic<std::int64_t> end{0};
};

enum class OperationKind : std::uint8_t { kernel, copy, fill, alloc, free, host, graph, record, wait };

// An operation as a trace keeps it.
struct TracedOperation {
  OperationKind kind = OperationKind::kernel;
  bool added = false;  // a wait, by hazards
  Backend* backend = nullptr;
  Ref<Stream> stream = nullptr;  // null: of memory that is no stream's
  Point point = 0;               // its own; 0: it is not in a stream's order
  Point closed = 0;              // by which it is measured
  Ref<Stream> source = nullptr;  // what a wait is for
  Point source_point = 0;
  std::size_t bytes = 0;
  Ref<Span> span = nullptr;
  Site site = {};
  std::string name = {};  // empty: nothing but the kind
};

// What all threads put into streams while it is on. Safe from any thread.
class Trace final : public RefCounted {
 public:
  // Any thread, under no lock: takes that of the list of traces, after which nobody publishes to this one.
  ~Trace() override { stop(); }
  // Either does nothing the second time.
  void start();
  void stop();
  // Of the first start; 0 before.
  std::int64_t began() const noexcept { return began_.load(); }
  // By now, in the order in which they were enqueued.
  std::vector<TracedOperation> operations() const;

 private:
  friend void publish(TracedOperation operation);
  mutable std::mutex mutex_;
  std::vector<TracedOperation> operations_;
  std::atomic<std::int64_t> began_{0};
};

extern std::atomic<int> traces_on;
inline bool tracing() noexcept { return traces_on.load(std::memory_order_relaxed) != 0; }

// Where the layer above is in its program, on this thread; nowhere until it says how to find out.
extern std::atomic<Site (*)()> calling_site;

// Told the number of what this thread puts into a stream from now on, and 0 when that is done; null: nobody.
extern std::atomic<void (*)(std::uint64_t number)> correlate;

// To be called, while `tracing`, around whatever is put into a stream. What this thread puts there between the two is
// one operation; opened twice, the first is forgotten. Both throw what `Backend::record` does.
void open_operation(Stream& stream);
// With what `open_operation` began: `operation` needs neither span nor site nor backend.
void close_operation(Stream& stream, TracedOperation operation);
// Without a stream's time: something that the host does, now.
void trace_instant(Backend& backend, TracedOperation operation);

// `Backend::wait`, while `tracing`.
Point trace_wait(Stream& stream, Stream& target, Point point, Marker* marker, bool added);
// The same, added within an operation that this thread has opened: that begins after it, and tells of it when it is
// closed. Calls nothing of the layer above, so a lock may be held.
void trace_inner_wait(Stream& stream, Stream& target, Point point);

}  // namespace anabranch
