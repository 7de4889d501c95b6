#pragma once

#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/kernel.hpp"
#include "anabranch/trace.hpp"
#include "pool.hpp"
#include "stream/waiter_list.hpp"
#include "task_memory.hpp"

namespace anabranch::cpu {

class CpuBackend;
class CpuStream;

enum class Step { done, parked };

// One operation of a stream. A task that parks has handed the stream on: whatever it waits for calls
// `CpuStream::resume` once, maybe before `start` has returned, so after that hand-over `start` touches neither the task
// nor the stream.
class Task {
 public:
  virtual ~Task() = default;
  static void* operator new(std::size_t bytes) { return take_task_memory(bytes); }
  static void operator delete(void* memory) noexcept { give_task_memory(memory); }
  // Runs on a worker. A task that fails sets `failure` and is done.
  virtual Step start(CpuStream& stream, Ref<Failure>& failure) noexcept = 0;
  // Instead of `start`, in a stream that failed before.
  virtual void skip(const Ref<Failure>&) noexcept {}

 protected:
  // The work is over, though its stream may have to wait for a worker before it goes on. Counts if it is traced.
  void note_end() noexcept {
    if (span_) [[unlikely]]
      ended_ = now_nanoseconds();
  }

 private:
  friend class CpuStream;
  Task* next_ = nullptr;
  Point point_ = 0;
  Ref<Span> span_;    // null: not traced
  Ref<Kernel> kept_;  // a kernel that no later operation of the stream runs
  std::int64_t ended_ = 0;
  bool counts_ = true;  // false for the waits that precede an operation to keep the legacy stream's order
};

// The order between the legacy stream and the blocking streams of a device: an operation of either side starts after
// everything put into the other side before it. Kept by waits that are added when operations are enqueued, to those
// that need them.
//
// Before and after are told apart by `reserved`: what is put into a blocking stream after it was raised comes after the
// legacy operation, although that is not enqueued before all streams have been seen to. Were it by when each is seen
// to, one stream's operation could come after the legacy one and another's, that waits for the first, before it: a
// circle.
//
// Blocking streams that got work since `reserved` was raised are `fresh`. Lock order: a stream's mutex, then this one.
struct LegacyOrder {
  std::mutex mutex;
  std::vector<CpuStream*> fresh;
  std::atomic<Point> reserved{0};  // the point of the legacy stream's newest operation; raised with `fresh` emptied
  CpuStream* legacy = nullptr;
};

// A stream as a chain of tasks that at most one worker works on at a time. It is in the pool's queue, or being worked
// on, or parked, or idle; only in the last state does nothing hold a reference to it.
class CpuStream final : public Stream, private Job {
 public:
  CpuStream(CpuBackend& backend, Pool& pool, LegacyOrder& order);

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;

  // Until `measured` is called again, what this thread enqueues here is part of a span; null: of none.
  static void measure(CpuStream* stream, Span* span) noexcept;
  // Enqueues a task. Any thread. `kernel`: what the task runs, which lives until it has. The stream counts a kernel
  // once for all launches in a row, since threads that launch the same one would count it in the same memory by turns.
  Point push(std::unique_ptr<Task> task, Kernel* kernel = nullptr);
  // A point that covers all work enqueued by now, the legacy stream's order included, as if an operation had been
  // enqueued.
  Point mark() { return options_.non_blocking ? issued() : mark_in_order(); }
  std::vector<Record> frontier();

  // Whether the point is reached; then `failure` is set if the stream failed at or before it.
  bool reached(Point point, Ref<Failure>* failure = nullptr) const;
  // Whether the point is reached and the stream had not failed by then.
  bool passed(Point point) const;
  // False, and no wake will come, if the point is reached already.
  bool add_waiter(Waiter& waiter, Point point);
  // False if the waiter has been or is being woken.
  bool remove_waiter(Waiter& waiter);

  // Either is called once for each task that parked, by any thread. `resume` leaves the rest to a worker; `complete`
  // publishes the point before it returns, but must not be called from a waiter's wake, or chains of waits would
  // recurse.
  void resume(Ref<Failure> failure) noexcept;
  void complete(Ref<Failure> failure) noexcept;

  Pool& pool() const noexcept { return pool_; }
  // The stream is about to wait: what passes until it goes on is not its own work. Only for whoever works on it.
  void rest() noexcept;

 private:
  friend class CpuBackend;
  static constexpr Point never = std::numeric_limits<Point>::max();

  void dispose() noexcept override;
  void open(StreamOptions options) noexcept;
  void run() noexcept override;
  Task* next() noexcept;
  void finish(Ref<Failure> failure) noexcept;
  Point mark_in_order();
  void append(Task* task) noexcept;
  void append_wait(CpuStream& target, Point point, Point before);
  void join_blocking_streams();
  void join_legacy_stream();

  Pool& pool_;
  LegacyOrder& order_;

  // Guarded by the mutex.
  mutable std::mutex mutex_;
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  Ref<Kernel> kernel_;  // what was launched last; null where all is over
  bool scheduled_ = false;
  bool fresh_ = false;
  Point legacy_seen_ = 0;    // the legacy operation that it comes after
  Point before_legacy_ = 0;  // its newest point when it came to know of that
  WaiterList waiters_;

  // Owned by whoever works on the stream.
  Task* batch_ = nullptr;
  Task* current_ = nullptr;
  Ref<Failure> resumed_;
  Ref<Failure> failure_;  // set once, before `failed_at_`

  std::ptrdiff_t fresh_slot_ = -1;  // guarded by the legacy order's mutex

  std::atomic<Point> completed_{0};
  std::atomic<Point> failed_at_{never};
  std::atomic<Point> lowest_waited_{WaiterList::none};
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::int64_t> busy_{0};
  std::atomic<std::int64_t> busy_since_{0};
};

}  // namespace anabranch::cpu
