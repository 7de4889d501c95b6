#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "explore/runnable.hpp"
#include "pace.hpp"
#include "placement.hpp"

namespace anabranch::explore {
class Controller;
}

namespace anabranch::cpu {

// Hints to the processor that this thread is spinning.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The number of operations of one stream or graph that a worker runs before it checks whether others wait for a worker.
inline constexpr int operations_per_turn = 64;

// A unit of work for a worker. Whoever queues it owns it; the pool does not touch it after calling `run`.
class Job : public explore::Runnable {
 public:
  explicit Job(bool urgent) : urgent_(urgent) {}
  virtual void run() noexcept = 0;

  explore::Readiness readiness() noexcept override { return explore::Readiness::ready; }
  void step() noexcept override { run(); }
  void rehearse() noexcept override {}
  bool is_part() const noexcept override { return true; }
  bool give_up() noexcept override { return false; }
  std::string waits_for() noexcept override { return {}; }
  bool has_reached(Point) noexcept override { return false; }
  Ref<Failure> failed() noexcept override { return nullptr; }

  bool urgent() const noexcept { return urgent_; }

 protected:
  ~Job() = default;
  void set_urgent(bool urgent) noexcept { urgent_ = urgent; }

 private:
  friend class Jobs;
  Job* next_ = nullptr;
  bool urgent_;
};

// A queue of jobs.
class Jobs {
 public:
  void push(Job& job) noexcept;
  // Appends all jobs of `other`, which has at least one and keeps its links.
  void append(const Jobs& other) noexcept;
  Job* pop() noexcept;
  Job* first() const noexcept { return first_; }
  int count() const noexcept { return count_; }

 private:
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  int count_ = 0;
};

// The worker threads of one device. Jobs run oldest first, urgent ones before all others. Threads start with the first
// job, block every signal and are never joined: they sleep in the kernel when there is no work.
//
// At most one idle worker watches the queue for a few microseconds before it sleeps, so that a host that enqueues small
// operations one by one does not pay for a system call each time.
class Pool {
 public:
  Pool(std::string name, int workers) : name_(std::move(name)), workers_(workers) {}

  // Queues a job. Any thread may call it; it does not block.
  void ready(Job& job) noexcept;
  // Queues several jobs of the same urgency, at least one.
  void ready(const Jobs& jobs) noexcept;
  // As `ready`, for a job that should run beside the caller, which goes on working.
  void share(Job& job) noexcept;
  int workers() const noexcept { return controller() ? 1 : workers_; }
  // The number of the calling worker in its pool, counted from 0; 0 for any other thread.
  static int this_worker() noexcept { return this_worker_; }
  // The recent speeds of what the workers run.
  Paces& paces() noexcept { return paces_; }
  // Whether a job is waiting that should run before one of that urgency. A hint.
  bool contended(bool urgent) const noexcept { return urgent_waiting_.load(std::memory_order_relaxed) > 0 && !urgent; }
  // Whether an idle worker is watching the queue and would take a job at once. A hint.
  bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }
  // Whether any job is waiting. A hint.
  bool waiting() const noexcept { return queued_.load(std::memory_order_relaxed) > 0; }

  // From now on jobs go to the controller, and kernels are not split; null: to the workers again.
  void control(explore::Controller* controller) noexcept;
  explore::Controller* controller() const noexcept { return controller_.load(std::memory_order_relaxed); }

  // Starts no further job, and waits up to `limit` for running ones.
  void stop(std::chrono::milliseconds limit) noexcept;
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

 private:
  // How a worker sleeps and is woken. Guarded by the mutex, but for notifications.
  struct Worker {
    std::condition_variable wake;
    pid_t thread = 0;
    bool called = false;
    Placement placement;
  };

  void add(const Jobs& jobs, bool beside) noexcept;
  void start_threads() noexcept;
  void work(Worker& self, int number) noexcept;
  Job* take(Worker& self, bool after_a_job) noexcept;
  // Requires the mutex. Returns the sleeping worker to notify, which nobody else will; null if none sleeps, or one
  // watches the queue.
  Worker* call(bool beside) noexcept;
  void sleep(Worker& self, std::unique_lock<std::mutex>& lock) noexcept;
  void watch() noexcept;

  static thread_local int this_worker_;

  const std::string name_;
  const int workers_;
  std::atomic<explore::Controller*> controller_{nullptr};
  Paces paces_;
  std::mutex mutex_;
  std::deque<Worker> threads_;
  std::vector<Worker*> sleepers_;  // the last to fall asleep is woken first: its caches are warm
  std::condition_variable quiet_;
  Jobs urgent_;
  Jobs normal_;
  bool started_ = false;
  int running_ = 0;
  std::atomic<int> queued_{0};
  std::atomic<int> urgent_waiting_{0};
  std::atomic<bool> watched_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace anabranch::cpu
