#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "anabranch/error.hpp"
#include "anabranch/ref.hpp"

namespace anabranch {

// An operation that something outside the stream completes: a host function, a gate. The stream reaches it, calls
// `start`, and goes on only once `complete` has been called, by any thread, also if that came first. A stream held by
// one holds nothing else.
class Pending : public RefCounted {
 public:
  // Lets the stream go on, or fails it. The first call counts, later ones do nothing. Any thread; does not block.
  void complete(Ref<Failure> failure = nullptr) noexcept;
  bool completed() const noexcept { return state_.load(std::memory_order_acquire) == State::completed; }

  // The stream has come to the operation. Runs on a worker or driver thread: must neither block nor run Python.
  virtual void start() noexcept {}
  // The operation will not run, since its stream had failed before. Same thread rules.
  virtual void skip(const Ref<Failure>&) noexcept {}

  // For backends. `enter`: the stream has come to the operation; false if it was complete already, else
  // `resume(context)` is called once, by the thread that completes it. The caller then calls `start`.
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

// Something for a host thread to do.
class Errand {
 public:
  Errand* next_errand = nullptr;

 protected:
  ~Errand() = default;
};

// Where streams leave errands for the host threads of the layer above. Posting never blocks for longer than the list
// takes to change and calls nothing of that layer, so any thread may, a driver's among them.
class Inbox {
 public:
  // `brief`: it takes no longer than to hand it over, so it goes together with all others like it.
  void post(Errand* errand, bool brief = false) noexcept;
  // Takes all brief errands, as a chain in the order in which they came, else the oldest of the others; waits for one.
  // Null once `close` was called.
  Errand* take() noexcept;
  void close() noexcept;
  // Blocks until errands have waited for half a millisecond with every thread at work: another thread is wanted. Short
  // errands do not need one. False once `close` was called.
  bool wait_until_short() noexcept;
  // How many threads wait in `take` beyond what is there for them.
  long spare() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable short_;
  struct Queue {
    Errand* first = nullptr;
    Errand* last = nullptr;
  };
  Queue all_brief_;
  Queue others_;
  long waiting_ = 0;
  long posted_ = 0;  // the brief ones count as one
  bool closed_ = false;
};

// The stream whose host function this thread is running, or null. What that stream has still to do comes after the
// function, so the function must not wait for it; what it had to do before is done.
const void*& host_function_stream() noexcept;

// The one that the host threads of this process wait in. Never destroyed, since they wait there until the process ends.
Inbox& host_inbox();

}  // namespace anabranch
