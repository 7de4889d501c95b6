#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "pace.hpp"

namespace anabranch::cpu {

// Tells the processor that this thread spins.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How many operations a worker runs of one stream or graph before it looks whether others wait for a worker.
inline constexpr int operations_per_turn = 64;

// A stretch of work for a worker. Owned by whoever queues it; the pool does not touch it after `run` was called.
class Job {
 public:
  explicit Job(bool urgent) : urgent_(urgent) {}
  virtual void run() noexcept = 0;
  bool urgent() const noexcept { return urgent_; }

 protected:
  ~Job() = default;
  void set_urgent(bool urgent) noexcept { urgent_ = urgent; }

 private:
  friend class Jobs;
  Job* next_ = nullptr;
  bool urgent_;
};

// Jobs in a row.
class Jobs {
 public:
  void push(Job& job) noexcept;
  // All of another's, which has at least one and is left as it is.
  void append(const Jobs& other) noexcept;
  Job* pop() noexcept;
  Job* first() const noexcept { return first_; }
  int count() const noexcept { return count_; }

 private:
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  int count_ = 0;
};

// The worker threads of one device. Jobs are taken oldest first, urgent ones before all others. Threads start with the
// first job, block every signal, and are never joined: they sleep in the kernel once nothing is left to do.
//
// At most one idle worker watches the queue for a few microseconds before it sleeps, so that a host that enqueues one
// small operation after the other does not pay for a system call each time.
class Pool {
 public:
  Pool(std::string name, int workers) : name_(std::move(name)), workers_(workers) {}

  // Queues a job. Any thread; does not block.
  void ready(Job& job) noexcept;
  // Queues several of the same urgency, at least one.
  void ready(const Jobs& jobs) noexcept;
  int workers() const noexcept { return workers_; }
  // The number of the calling worker in its pool, from 0 on; 0 for any other thread.
  static int this_worker() noexcept { return this_worker_; }
  // How fast what the workers run is.
  Paces& paces() noexcept { return paces_; }
  // Whether a job waits that should go before one of that urgency. A hint.
  bool contended(bool urgent) const noexcept { return urgent_waiting_.load(std::memory_order_relaxed) > 0 && !urgent; }
  // Whether an idle worker watches the queue, so that a job would be taken at once. A hint.
  bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }
  // Whether any job waits. A hint.
  bool waiting() const noexcept { return queued_.load(std::memory_order_relaxed) > 0; }

  // Lets no further job start and waits up to `limit` for those that run.
  void stop(std::chrono::milliseconds limit) noexcept;
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

 private:
  void start_threads() noexcept;
  void work(int number) noexcept;
  Job* take(bool after_a_job) noexcept;
  void watch() noexcept;

  static thread_local int this_worker_;

  const std::string name_;
  const int workers_;
  Paces paces_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable quiet_;
  Jobs urgent_;
  Jobs normal_;
  bool started_ = false;
  int sleeping_ = 0;
  int running_ = 0;
  std::atomic<int> queued_{0};
  std::atomic<int> urgent_waiting_{0};
  std::atomic<bool> watched_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace anabranch::cpu
