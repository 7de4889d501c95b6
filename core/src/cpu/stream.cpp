#include "stream.hpp"

#include <algorithm>

#include "backend.hpp"
#include "explore/controller.hpp"
#include "task.hpp"

namespace anabranch::cpu {
namespace {

// The number of times that an idle worker checks for the stream's next operation.
constexpr int linger = 32;

// The span that operations enqueued by this thread belong to.
struct Measured {
  const CpuStream* stream = nullptr;
  Span* span = nullptr;
};
thread_local Measured measured;

// What the operation that this thread enqueues waits for by the legacy stream's order, for exploration.
thread_local std::vector<std::pair<Stream*, Point>> added_waits;

// Called for each task of the span; the first sets the time.
void begin(Span& span) noexcept {
  std::int64_t not_yet = 0;
  span.begin.compare_exchange_strong(not_yet, now_nanoseconds());
}

}  // namespace

CpuStream::CpuStream(CpuBackend& backend, Pool& pool, LegacyOrder& order)
    : Stream(backend, {}), Job(false), pool_(pool), order_(order) {}

void CpuStream::open(StreamOptions options) noexcept {
  set_urgent(options.priority < 0);
  options_ = std::move(options);
}

std::uintptr_t CpuStream::handle() const noexcept {
  switch (options_.role) {
    case StreamRole::legacy:
      return 1;
    case StreamRole::per_thread:
      return 2;
    default:
      return reinterpret_cast<std::uintptr_t>(this);
  }
}

Activity CpuStream::activity() const noexcept {
  const std::int64_t since = busy_since_.load(std::memory_order_relaxed);
  return {operations_.load(std::memory_order_relaxed),
          busy_.load(std::memory_order_relaxed) + (since ? now_nanoseconds() - since : 0)};
}

void CpuStream::measure(CpuStream* stream, Span* span) noexcept { measured = {stream, span}; }

void CpuStream::append(Task* task) noexcept {
  (last_ ? last_->next_ : first_) = task;
  last_ = task;
}

void CpuStream::append_wait(CpuStream& target, Point point, Point before) {
  if (target.over(point)) return;
  if (pool_.controller()) [[unlikely]]
    added_waits.emplace_back(&target, point);
  Task* wait = new WaitTask(target, point);
  wait->point_ = before;
  wait->counts_ = false;
  append(wait);
}

// The legacy stream's side.
void CpuStream::join_blocking_streams() {
  const Point point = issued_.load(std::memory_order_relaxed) + 1;
  std::vector<Ref<CpuStream>> fresh;
  {
    std::lock_guard lock(order_.mutex);
    order_.reserved.store(point, std::memory_order_release);
    for (CpuStream* stream : order_.fresh) {
      stream->fresh_slot_ = -1;
      if (stream->try_retain()) fresh.push_back(Ref<CpuStream>::take(stream));
    }
    order_.fresh.clear();
  }
  for (const Ref<CpuStream>& stream : fresh) {
    Point last = 0;
    {
      std::lock_guard lock(stream->mutex_);
      if (stream->legacy_seen_ == point) {
        last = stream->before_legacy_;  // and it has become fresh again since
      } else {
        last = stream->issued();
        stream->fresh_ = false;
      }
    }
    append_wait(*stream, last, point);
  }
}

// The blocking stream's side.
void CpuStream::join_legacy_stream() {
  if (fresh_ && order_.reserved.load(std::memory_order_acquire) == legacy_seen_) return;
  Point reserved = 0;
  {
    std::lock_guard lock(order_.mutex);
    if (fresh_slot_ < 0) {
      fresh_slot_ = static_cast<std::ptrdiff_t>(order_.fresh.size());
      order_.fresh.push_back(this);
    }
    reserved = order_.reserved.load(std::memory_order_relaxed);
  }
  fresh_ = true;
  if (reserved > legacy_seen_) {
    legacy_seen_ = reserved;
    before_legacy_ = issued_.load(std::memory_order_relaxed);
    append_wait(*order_.legacy, reserved, before_legacy_ + 1);
  }
}

inline Point CpuStream::enqueue(std::unique_ptr<Task> task, Kernel* kernel) {
  Point point = 0;
  bool idle = false;
  bool here = false;
  {
    std::lock_guard lock(mutex_);
    if (options_.role == StreamRole::legacy) {
      join_blocking_streams();
    } else if (!options_.non_blocking) {
      join_legacy_stream();
    }
    point = issued_.load(std::memory_order_relaxed) + 1;
    task->point_ = point;
    if (kernel && kernel_.get() != kernel) task->kept_ = std::exchange(kernel_, Ref<Kernel>::share(kernel));
    idle = !scheduled_;
    here = idle && !first_ && task->starts_anywhere() && !pool_.controller();
    Task* const appended = task.release();
    if (here) {
      batch_ = appended;
    } else {
      append(appended);
    }
    issued_.store(point, std::memory_order_release);
    scheduled_ = true;
  }
  if (idle) {
    retain();
    if (here) {
      start_here();
    } else {
      pool_.ready(*this);
    }
  }
  return point;
}

Point CpuStream::push(std::unique_ptr<Task> task, Kernel* kernel) {
  if (observing()) [[unlikely]]
    return enqueue_observed(std::move(task), kernel);
  return enqueue(std::move(task), kernel);
}

Point CpuStream::enqueue_observed(std::unique_ptr<Task> task, Kernel* kernel) {
  if (tracing() && measured.stream == this) task->span_ = Ref<Span>::share(measured.span);
  explore::Controller* const controller = pool_.controller();
  if (!controller) return enqueue(std::move(task), kernel);
  explore::Description description = task->describe();
  added_waits.clear();
  const Point point = enqueue(std::move(task), kernel);
  description.waits.insert(description.waits.end(), added_waits.begin(), added_waits.end());
  controller->enqueued(*this, *this, point, std::move(description));
  return point;
}

// Also holds the stream's own mutex, so that no operation is half enqueued: its waits have removed streams from `fresh`
// before its point is issued. Completed work needs no mark unless it failed: a host that observes the stream must not
// find a new operation pending.
Point CpuStream::mark_in_order() {
  bool owed = false;
  {
    std::lock_guard lock(mutex_);
    std::lock_guard order_lock(order_.mutex);
    if (options_.role == StreamRole::legacy) {
      owed = std::any_of(order_.fresh.begin(), order_.fresh.end(),
                         [](const CpuStream* stream) { return !stream->over(stream->issued()); });
    } else {
      const Point reserved = order_.reserved.load(std::memory_order_relaxed);
      owed = reserved > legacy_seen_ && !order_.legacy->over(reserved);
    }
  }
  return owed ? push(std::make_unique<MarkTask>()) : issued();
}

std::vector<Record> CpuStream::frontier() {
  if (options_.role != StreamRole::legacy) return {{Ref<Stream>::share(this), issued(), nullptr}};
  std::lock_guard lock(mutex_);  // as in `mark_in_order`
  std::lock_guard order_lock(order_.mutex);
  std::vector<Record> records{{Ref<Stream>::share(this), issued(), nullptr}};
  for (CpuStream* stream : order_.fresh) {
    if (!stream->over(stream->issued()) && stream->try_retain()) {
      records.push_back({Ref<Stream>::take(stream), stream->issued(), nullptr});
    }
  }
  return records;
}

bool CpuStream::passed(Point point) const {
  Ref<Failure> failure;
  return reached(point, &failure) && !failure;
}

bool CpuStream::reached(Point point, Ref<Failure>* failure) const {
  if (completed_.load(std::memory_order_acquire) < point) return false;
  if (failure && failed_at_.load(std::memory_order_acquire) <= point) *failure = failure_;
  return true;
}

bool CpuStream::add_waiter(Waiter& waiter, Point point) {
  std::lock_guard lock(mutex_);
  if (completed_.load() >= point) return false;
  waiters_.add(waiter, point);
  // `finish` stores `completed_` and then loads this. Either it sees the waiter, or the next line sees the point
  // reached.
  lowest_waited_.store(waiters_.lowest());
  if (completed_.load() < point) return true;
  waiters_.remove(waiter);
  lowest_waited_.store(waiters_.lowest());
  return false;
}

bool CpuStream::remove_waiter(Waiter& waiter) {
  std::lock_guard lock(mutex_);
  const bool found = waiters_.remove(waiter);
  lowest_waited_.store(waiters_.lowest());
  return found;
}

void CpuStream::resume(Ref<Failure> failure) noexcept {
  if (pool_.controller()) return complete(std::move(failure));
  resumed_ = std::move(failure);
  pool_.ready(*this);
}

void CpuStream::complete(Ref<Failure> failure, bool start_next) noexcept {
  finish(std::move(failure));
  if (pool_.controller()) return pool_.ready(*this);
  if (!batch_ && !refill()) return;
  if (start_next && batch_->starts_anywhere() && !pool_.stopping()) return start_here();
  pool_.ready(*this);
}

// The calling thread runs the stream as a worker would, up to the end of this operation.
void CpuStream::start_here() noexcept {
  if (busy_since_.load(std::memory_order_relaxed) == 0) busy_since_.store(now_nanoseconds(), std::memory_order_relaxed);
  current_ = take();
  if (current_->span_) [[unlikely]]
    begin(*current_->span_);
  Ref<Failure> failure;
  if (failed_at_.load(std::memory_order_relaxed) != never) {
    current_->skip(failure_);
  } else if (current_->start(*this, failure) == Step::parked) {
    return;
  }
  finish(std::move(failure));
  if (batch_ || refill()) pool_.ready(*this);
}

void CpuStream::run() noexcept {
  if (busy_since_.load(std::memory_order_relaxed) == 0) busy_since_.store(now_nanoseconds(), std::memory_order_relaxed);
  if (current_) finish(std::move(resumed_));
  for (int left = operations_per_turn;; left = std::max(left - 1, 0)) {
    if (pool_.stopping()) return;
    if (pool_.contended(urgent()) || (left == 0 && pool_.waiting())) return pool_.ready(*this);
    Task* task = next();
    if (!task) return;
    current_ = task;
    if (task->span_) [[unlikely]]
      begin(*task->span_);
    Ref<Failure> failure;
    if (failed_at_.load(std::memory_order_relaxed) != never) {
      task->skip(failure_);
    } else if (task->start(*this, failure) == Step::parked) {
      return;
    }
    finish(std::move(failure));
  }
}

Task* CpuStream::next() noexcept {
  if (!batch_) {
    // A host that enqueues operations one by one is about to bring the next. Releasing the stream and taking it again
    // would cost more than this microsecond of spinning, which ends early if other jobs wait.
    for (int i = 0; i < linger && issued() == completed_.load(std::memory_order_relaxed) && !pool_.waiting(); ++i)
      relax();
    if (!refill()) return nullptr;
  }
  return take();
}

// Returns false, with the stream let go of, if there is no operation.
bool CpuStream::refill() noexcept {
  std::unique_lock lock(mutex_);
  batch_ = first_;
  first_ = last_ = nullptr;
  if (batch_) return true;
  rest();
  scheduled_ = false;
  const Ref<Kernel> kernel = std::move(kernel_);  // released outside the lock
  lock.unlock();
  release();
  return false;
}

void CpuStream::rest() noexcept {
  const std::int64_t since = busy_since_.exchange(0, std::memory_order_relaxed);
  if (since != 0) busy_.fetch_add(now_nanoseconds() - since, std::memory_order_relaxed);
}

void CpuStream::finish(Ref<Failure> failure) noexcept {
  const Point point = current_->point_;
  const bool counts = current_->counts_;
  if (current_->span_) [[unlikely]]
    current_->span_->end.store(current_->ended_ ? current_->ended_ : now_nanoseconds());
  delete current_;
  current_ = nullptr;
  if (failure) {
    failure_ = std::move(failure);
    failed_at_.store(point, std::memory_order_release);
  }
  if (!counts) return;
  operations_.fetch_add(1, std::memory_order_relaxed);
  completed_.store(point);
  if (lowest_waited_.load() > point) return;
  Waiter* woken = nullptr;
  {
    std::lock_guard lock(mutex_);
    woken = waiters_.take(point);
    lowest_waited_.store(waiters_.lowest());
  }
  WaiterList::wake(woken, failure_);
}

// Runs on any thread, including workers, with no lock held. Takes the legacy order's mutex, then the lanes', then the
// device's, one at a time.
void CpuStream::dispose() noexcept {
  forget_recorder();  // may hold the last references to other streams, which are then recycled, too
  {
    std::lock_guard lock(order_.mutex);
    if (fresh_slot_ >= 0) {
      auto place = order_.fresh.begin() + fresh_slot_;
      if (pool_.controller()) {
        // A query of the legacy stream asks about these in their order, which has to be the same in every run.
        for (place = order_.fresh.erase(place); place != order_.fresh.end(); ++place) --(*place)->fresh_slot_;
      } else {
        *place = order_.fresh.back();
        (*place)->fresh_slot_ = fresh_slot_;
        order_.fresh.pop_back();
      }
      fresh_slot_ = -1;
    }
  }
  static_cast<CpuBackend&>(backend_).recycle(*this);
}

}  // namespace anabranch::cpu
