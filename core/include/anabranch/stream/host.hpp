#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "anabranch/error.hpp"
#include "anabranch/ref.hpp"

namespace anabranch {

// An operation that something outside the stream completes: a host function or a gate. When the stream reaches it, the
// backend calls `start`. The stream continues once any thread has called `complete`, which may happen before. Such an
// operation suspends its own stream only.
class HostOperation : public RefCounted {
 public:
  // Lets the stream continue, or fails it. Only the first call has an effect. Any thread may call it; it does not
  // block.
  void complete(Ref<Failure> failure = nullptr) noexcept;
  bool completed() const noexcept { return state_.load(std::memory_order_acquire) == State::completed; }

  // Whether `start` makes the program's own code run, which then completes the operation.
  virtual bool calls() const noexcept { return false; }
  // Called when the stream reaches the operation, on a worker or driver thread: must neither block nor run Python.
  virtual void start() noexcept {}
  // Called instead of `start` if the stream has failed before. The same thread rules apply.
  virtual void skip(const Ref<Failure>&) noexcept {}

  // For backends, when the stream reaches the operation. Returns false if it is already completed. Otherwise the caller
  // calls `start`, and the thread that completes the operation calls `resume(context)` once.
  using Resume = void (*)(void* context) noexcept;
  bool enter(Resume resume, void* context) noexcept;
  const Ref<Failure>& failure() const noexcept { return failure_; }

 private:
  enum class State { queued, entered, completed };
  std::atomic<State> state_{State::queued};
  std::mutex mutex_;
  Ref<Failure> failure_;
  Resume resume_ = nullptr;
  void* context_ = nullptr;
};

// A job for a host thread.
class HostJob {
 public:
  HostJob* next_job = nullptr;

 protected:
  ~HostJob() = default;
};

// A queue of jobs for the host threads of the layer above. Posting takes a short lock and calls nothing of that
// layer, so any thread may post, including a driver's.
class Inbox {
 public:
  // `brief`: the job takes no longer than handing it over, so `take` returns all brief jobs together.
  void post(HostJob* job, bool brief = false) noexcept;
  // Takes all brief jobs as a chain, in the order in which they were posted, or else the oldest other job. Blocks
  // until there is one. Returns null after `close`.
  HostJob* take() noexcept;
  // Takes likewise, or returns null if there is none.
  HostJob* try_take() noexcept;
  void close() noexcept;
  // Blocks until jobs have waited for half a millisecond with every thread busy, so that another thread is needed.
  // Brief jobs do not need one. Also wakes a thread for a job that was posted quietly and has waited as long. Returns
  // false after `close`.
  bool wait_until_short() noexcept;
  // The number of threads waiting in `take` in excess of the jobs available.
  long spare() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable short_;
  struct Queue {
    HostJob* first = nullptr;
    HostJob* last = nullptr;
  };
  HostJob* pop() noexcept;
  Queue all_brief_;
  Queue others_;
  long waiting_ = 0;
  long posted_ = 0;  // brief jobs count as one
  long quiet_ = 0;   // of these, for which nobody was woken
  std::uint64_t taken_ = 0;
  bool closed_ = false;
};

// While it is true, the calling thread posts quietly: it is about to ask `try_take`, so nobody is woken for the job.
bool& posts_quietly() noexcept;

// The stream whose host function this thread is running, or null. The function must not wait for the stream's later
// work, which waits for the function. The stream's earlier work is completed.
const void*& host_function_stream() noexcept;

// A function that a waiting host thread runs before it sleeps, to save waking another thread. It calls `over` until
// that returns true, for at most some microseconds, and returns at once if there is nothing to do. May be null.
using HostHelp = void (*)(bool (*over)(void* context), void* context) noexcept;
std::atomic<HostHelp>& host_help() noexcept;

// The inbox that the host threads of this process wait on. Never destroyed, because they wait until the process ends.
Inbox& host_inbox();

}  // namespace anabranch
