#include "anabranch/stream/host.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace anabranch {

void HostOperation::complete(Ref<Failure> failure) noexcept {
  Resume resume = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::completed) return;
    failure_ = std::move(failure);
    if (state_ == State::entered) resume = resume_;
    state_.store(State::completed, std::memory_order_release);
  }
  if (resume) resume(context_);
}

bool HostOperation::enter(Resume resume, void* context) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::completed) return false;
    resume_ = resume;
    context_ = context;
    state_ = State::entered;
  }
  return true;
}

void Inbox::post(HostJob* job, bool brief) noexcept {
  std::lock_guard lock(mutex_);
  job->next_job = nullptr;
  Queue& queue = brief ? all_brief_ : others_;
  const bool joins = brief && queue.first;
  (queue.first ? queue.last->next_job : queue.first) = job;
  queue.last = job;
  if (joins) return;
  ++posted_;
  if (!brief && posts_quietly()) {
    if (quiet_++ == 0) short_.notify_one();
    return;
  }
  arrived_.notify_one();
  if (posted_ > waiting_) short_.notify_one();
}

// Requires that there is a job.
HostJob* Inbox::pop() noexcept {
  --posted_;
  ++taken_;
  quiet_ = std::min(quiet_, posted_);
  if (all_brief_.first) return std::exchange(all_brief_, {}).first;
  HostJob* job = others_.first;
  others_.first = std::exchange(job->next_job, nullptr);
  return job;
}

HostJob* Inbox::take() noexcept {
  std::unique_lock lock(mutex_);
  ++waiting_;
  arrived_.wait(lock, [this] { return posted_ != 0 || closed_; });
  --waiting_;
  return closed_ ? nullptr : pop();
}

HostJob* Inbox::try_take() noexcept {
  std::lock_guard lock(mutex_);
  return closed_ || posted_ == 0 ? nullptr : pop();
}

void Inbox::close() noexcept {
  std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
  short_.notify_all();
}

bool Inbox::wait_until_short() noexcept {
  constexpr auto patience = std::chrono::microseconds(500);
  std::unique_lock lock(mutex_);
  while (true) {
    short_.wait(lock, [this] { return posted_ > waiting_ || quiet_ > 0 || closed_; });
    const std::uint64_t taken = taken_;
    const bool relieved =
        short_.wait_for(lock, patience, [this] { return (posted_ <= waiting_ && quiet_ == 0) || closed_; });
    if (closed_) return false;
    if (!relieved && posted_ > waiting_) return true;
    if (quiet_ > 0 && taken == taken_) {  // its thread does something else first
      quiet_ = 0;
      arrived_.notify_all();
    }
  }
}

long Inbox::spare() const noexcept {
  std::lock_guard lock(mutex_);
  return waiting_ - posted_;
}

bool& posts_quietly() noexcept {
  thread_local bool quietly = false;
  return quietly;
}

const void*& host_function_stream() noexcept {
  thread_local const void* stream = nullptr;
  return stream;
}

std::atomic<HostHelp>& host_help() noexcept {
  static std::atomic<HostHelp> help{nullptr};
  return help;
}

Inbox& host_inbox() {
  static Inbox* inbox = new Inbox;
  return *inbox;
}

}  // namespace anabranch
