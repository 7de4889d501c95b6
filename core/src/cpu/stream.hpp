#pragma once

#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "anabranch/kernel/kernel.hpp"
#include "anabranch/stream/event.hpp"
#include "anabranch/trace/trace.hpp"
#include "pool.hpp"
#include "stream/waiter_list.hpp"
#include "task_memory.hpp"

namespace anabranch::cpu {

class CpuBackend;
class CpuStream;

enum class Step { done, parked };

// One operation of a stream. A task that parks hands the stream over: whatever it waits for calls `CpuStream::resume`
// once, possibly before `start` has returned. After the hand-over, `start` touches neither the task nor the stream.
class Task {
 public:
  virtual ~Task() = default;
  static void* operator new(std::size_t bytes) { return take_task_memory(bytes); }
  static void operator delete(void* memory) noexcept { give_task_memory(memory); }
  // Runs on a worker. A task that fails sets `failure` and returns done.
  virtual Step start(CpuStream& stream, Ref<Failure>& failure) noexcept = 0;
  // Whether `start` only hands the work over, so that a thread that enqueues it in an idle stream need not wake a
  // worker for it.
  virtual bool starts_anywhere() const noexcept { return false; }
  // Called instead of `start` in a stream that has failed.
  virtual void skip(const Ref<Failure>&) noexcept {}

  // -- for exploration, before the task starts --
  // Whether it would not park, unless for a function of the host's.
  virtual bool ready() const noexcept { return true; }
  virtual explore::Description describe() const { return {.what = "mark", .order = true}; }
  virtual void rehearse(CpuStream&) noexcept {}
  // See `explore::Runnable`. Then `step` is called instead of `start`.
  virtual bool begin_parts(CpuStream&) noexcept { return false; }
  virtual Step step(CpuStream& stream, Ref<Failure>& failure) noexcept { return start(stream, failure); }
  // See `explore::Runnable`.
  virtual bool give_up() noexcept { return false; }

 protected:
  // Call this when the work ends, although its stream may have to wait for a worker. Records the time for traces.
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
  bool counts_ = true;  // false for waits added for the legacy stream's order
};

// The order between the legacy stream and the blocking streams of a device: an operation of either side starts after
// everything enqueued before on the other side. Waits that are added at enqueue, only where needed, keep this order.
//
// `reserved` separates before from after: everything enqueued in a blocking stream after `reserved` was raised comes
// after the legacy operation, although that operation is enqueued only once all streams have been visited. If the time
// of each visit decided, one stream's operation could come after the legacy operation, and another's, which waits for
// the first, before it: a cycle.
//
// Blocking streams that have enqueued work since `reserved` was raised are `fresh`. Lock order: a stream's mutex, then
// this one.
struct LegacyOrder {
  std::mutex mutex;
  std::vector<CpuStream*> fresh;
  std::atomic<Point> reserved{0};  // the point of the legacy stream's newest operation; raised when `fresh` is emptied
  CpuStream* legacy = nullptr;
};

// A stream is a chain of tasks; at most one worker runs it at a time. It is queued in the pool, running, parked or
// idle, and it keeps itself alive unless it is idle.
class CpuStream final : public Stream, private Job {
 public:
  CpuStream(CpuBackend& backend, Pool& pool, LegacyOrder& order);

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;

  // Everything that this thread enqueues here belongs to `span` until the next call; null: to none.
  static void measure(CpuStream* stream, Span* span) noexcept;
  // Enqueues a task. Any thread may call it. `kernel`: the kernel that the task runs; it lives until the task has run.
  // The stream takes one reference for all launches in a row, since threads that launch the same kernel would contend
  // for its count.
  Point push(std::unique_ptr<Task> task, Kernel* kernel = nullptr);
  // A point that covers all work enqueued so far, including the legacy stream's order, as for an enqueued operation.
  Point mark() { return options_.non_blocking ? issued() : mark_in_order(); }
  std::vector<Record> frontier();

  // Whether the point is reached. If so, sets `failure` if the stream failed at or before it.
  bool reached(Point point, Ref<Failure>* failure = nullptr) const;
  bool may_have_failed() const noexcept override { return failed_at_.load(std::memory_order_acquire) != never; }
  // Whether the point is reached without a failure.
  bool passed(Point point) const;
  // Returns false, without a wake, if the point is already reached.
  bool add_waiter(Waiter& waiter, Point point);
  // Returns false if the waiter has been woken or is being woken.
  bool remove_waiter(Waiter& waiter);

  // One of these is called once for each task that parked, by any thread. `resume` leaves the rest to a worker.
  // `complete` publishes the point before it returns, but must not be called from a waiter's wake, or chains of waits
  // would recurse. `start_next`: if the next operation starts anywhere, the calling thread starts it.
  void resume(Ref<Failure> failure) noexcept;
  void complete(Ref<Failure> failure, bool start_next = false) noexcept;

  // Whether work that is over need not be waited for: in an exploration, that from before the run alone, so that what
  // is enqueued does not depend on the schedule.
  bool over(Point point) const { return pool_.controller() ? point <= before_run_ : passed(point); }

  Pool& pool() const noexcept { return pool_; }
  explore::Runnable& runnable() noexcept { return *this; }
  // Excludes the time until the stream continues from its busy time. Call it before parking, on the worker that runs
  // the stream.
  void rest() noexcept;

 private:
  friend class CpuBackend;
  explore::Readiness readiness() noexcept override;
  void step() noexcept override;
  void rehearse() noexcept override;
  bool is_part() const noexcept override { return false; }
  bool begin_parts() noexcept override;
  bool give_up() noexcept override;
  std::string waits_for() noexcept override;
  bool has_reached(Point point) noexcept override { return reached(point); }
  Ref<Failure> failed() noexcept override;

  static constexpr Point never = std::numeric_limits<Point>::max();

  void dispose() noexcept override;
  void open(StreamOptions options) noexcept;
  void run() noexcept override;
  void start_here() noexcept;
  Task* next() noexcept;
  bool refill() noexcept;
  Task* take() noexcept {
    Task* const task = batch_;
    batch_ = task->next_;
    return task;
  }
  const Task* awaited() const noexcept;
  bool step_once() noexcept;
  void forget_failure_after(Point point) noexcept;
  Point enqueue(std::unique_ptr<Task> task, Kernel* kernel);
  Point enqueue_observed(std::unique_ptr<Task> task, Kernel* kernel);
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
  Ref<Kernel> kernel_;  // the last launched kernel; null if all work is completed
  bool scheduled_ = false;
  bool fresh_ = false;
  Point legacy_seen_ = 0;    // the legacy operation that the stream comes after
  Point before_legacy_ = 0;  // the stream's newest point when it joined that operation
  WaiterList waiters_;

  // Owned by whoever runs the stream.
  Task* batch_ = nullptr;
  Task* current_ = nullptr;
  Ref<Failure> resumed_;
  Ref<Failure> failure_;  // set once, before `failed_at_`

  Point before_run_ = 0;  // the newest point when the exploration's run began

  std::ptrdiff_t fresh_slot_ = -1;  // guarded by the legacy order's mutex

  std::atomic<Point> completed_{0};
  std::atomic<Point> failed_at_{never};
  std::atomic<Point> lowest_waited_{WaiterList::none};
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::int64_t> busy_{0};
  std::atomic<std::int64_t> busy_since_{0};
};

// Requires a stream of a device of this kind.
inline CpuStream& as_cpu(Stream& stream) noexcept { return static_cast<CpuStream&>(stream); }

}  // namespace anabranch::cpu
