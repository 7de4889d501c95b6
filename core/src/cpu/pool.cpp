#include "pool.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "explore/controller.hpp"

namespace anabranch::cpu {
namespace {

constexpr auto watch_time = std::chrono::microseconds(20);

}  // namespace

void Jobs::push(Job& job) noexcept {
  job.next_ = nullptr;
  (last_ ? last_->next_ : first_) = &job;
  last_ = &job;
  ++count_;
}

void Jobs::append(const Jobs& other) noexcept {
  (last_ ? last_->next_ : first_) = other.first_;
  last_ = other.last_;
  count_ += other.count_;
}

Job* Jobs::pop() noexcept {
  Job* job = first_;
  if (job) {
    first_ = job->next_;
    if (!first_) last_ = nullptr;
    --count_;
  }
  return job;
}

void Pool::ready(Job& job) noexcept {
  Jobs one;
  one.push(job);
  add(one, false);
}

void Pool::ready(const Jobs& jobs) noexcept { add(jobs, false); }

void Pool::share(Job& job) noexcept {
  Jobs one;
  one.push(job);
  add(one, true);
}

void Pool::add(const Jobs& jobs, bool beside) noexcept {
  if (explore::Controller* const controller = this->controller()) [[unlikely]] {
    Jobs left = jobs;
    while (Job* const job = left.pop()) controller->ready(*job);
    return;
  }
  Worker* called = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!started_) start_threads();
    const bool urgent = jobs.first()->urgent();
    (urgent ? urgent_ : normal_).append(jobs);
    if (urgent) urgent_waiting_.fetch_add(jobs.count(), std::memory_order_relaxed);
    queued_.fetch_add(jobs.count(), std::memory_order_seq_cst);
    // A watching worker sees the jobs. Otherwise wake one worker; each one wakes the next.
    called = call(beside);
  }
  if (called) called->wake.notify_one();
}

Pool::Worker* Pool::call(bool beside) noexcept {
  if (sleepers_.empty() || watched_.load(std::memory_order_seq_cst)) return nullptr;
  Worker* const called = sleepers_.back();
  sleepers_.pop_back();
  called->called = true;
  if (beside) called->placement.wake_elsewhere(called->thread);
  return called;
}

void Pool::control(explore::Controller* controller) noexcept {
  controller_.store(controller, std::memory_order_relaxed);
}

void Pool::start_threads() noexcept {
  started_ = true;
  sleepers_.reserve(static_cast<std::size_t>(workers_));
  // Signals belong to the host's threads: if a worker took a Ctrl-C, the main thread would stay asleep.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < workers_; ++i) {
    std::thread thread([this, &self = threads_.emplace_back(), i] { work(self, i); });
    const std::string name = name_ + "-" + std::to_string(i);
    pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
    thread.detach();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

thread_local int Pool::this_worker_ = 0;

void Pool::work(Worker& self, int number) noexcept {
  this_worker_ = number;
  self.thread = static_cast<pid_t>(syscall(SYS_gettid));
  Job* job = take(self, false);
  while (job) {
    job->run();
    job = take(self, true);
  }
}

Job* Pool::take(Worker& self, bool after_a_job) noexcept {
  std::unique_lock lock(mutex_);
  if (after_a_job) --running_;
  bool watch_first = true;
  while (true) {
    if (stopping_) {
      if (running_ == 0) quiet_.notify_all();
      return nullptr;
    }
    Job* job = urgent_.pop();
    if (job) {
      urgent_waiting_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      job = normal_.pop();
    }
    if (job) {
      ++running_;
      const int left = queued_.fetch_sub(1, std::memory_order_relaxed) - 1;
      Worker* const called = left > 0 ? call(true) : nullptr;
      lock.unlock();
      if (called) called->wake.notify_one();
      return job;
    }
    if (watch_first && !watched_.exchange(true)) {
      lock.unlock();
      watch();
      lock.lock();
      watched_ = false;
      watch_first = false;
      continue;
    }
    sleep(self, lock);
    watch_first = true;
  }
}

void Pool::sleep(Worker& self, std::unique_lock<std::mutex>& lock) noexcept {
  sleepers_.push_back(&self);
  self.wake.wait(lock, [&self] { return self.called; });
  self.called = false;
  self.placement.release();
}

void Pool::watch() noexcept {
  const auto end = std::chrono::steady_clock::now() + watch_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (queued_.load(std::memory_order_relaxed) > 0) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end && !stopping());
}

void Pool::stop(std::chrono::milliseconds limit) noexcept {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (Worker* const sleeper : sleepers_) {
    sleeper->called = true;
    sleeper->wake.notify_one();
  }
  sleepers_.clear();
  quiet_.wait_for(lock, limit, [this] { return running_ == 0; });
}

}  // namespace anabranch::cpu
