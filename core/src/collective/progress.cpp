#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "anabranch/collective/collective.hpp"

namespace anabranch {
namespace {

using Steady = std::chrono::steady_clock;

// Rounds without news after which the thread sleeps between two rounds: a short collective ends within these, and a
// thread that spun for longer would take the core from the kernels that the collective overlaps.
constexpr int busy_rounds = 300;
constexpr int short_rests = 20000;
constexpr auto short_rest = std::chrono::microseconds(50);
constexpr auto long_rest = std::chrono::microseconds(500);

// A round without news that took longer has moved a part of a large message, which a rest would hold up.
constexpr auto longest_empty_round = std::chrono::microseconds(8);

// How long a host thread drives collectives before it sleeps. The progress thread completes longer ones, so that the
// host does not take a core from kernels.
constexpr auto longest_help = std::chrono::microseconds(400);
// A message between ranks on two cores takes some rounds. A rank that shares its core must get it soon.
constexpr int rounds_per_yield = 16;
// If a host thread has helped a moment ago, its next collective does not wake the progress thread, because the host
// thread will probably help again. The thread polls at these intervals until nobody has helped for a while.
constexpr auto doze = std::chrono::microseconds(100);
constexpr auto dozes_after_help = std::chrono::milliseconds(2);

template <class T>
void divide(void* data, std::int64_t count, int by) {
  T* const values = static_cast<T*>(data);
  for (std::int64_t i = 0; i < count; ++i) values[i] /= static_cast<T>(by);
}

void divide(const Division& division) {
  if (!division.data) return;
  (division.wide ? divide<double> : divide<float>)(division.data, division.count, division.by);
}

}  // namespace

Progress& Progress::instance() {
  static Progress* progress = new Progress;
  return *progress;
}

Progress::Progress() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  host_help().store([](bool (*over)(void*), void* context) noexcept { instance().help(over, context); });
}

// Requires the mutex. `from_host`: a host thread has just enqueued what there is to do.
void Progress::wake(Channel& channel, bool from_host) noexcept {
  if (!channel.listed_) {
    channel.listed_ = true;
    listed_.push_back(Ref<Channel>::share(&channel));
  }
  attention_ = true;
  if (!running_ && !stopping_) {
    running_ = true;
    std::thread(&Progress::run, this).detach();
  }
  if (!(from_host && dozing_)) woken_.notify_one();
}

std::vector<ChannelFailure> Progress::take_failures() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(descriptor_, &count, sizeof count);
  return std::exchange(failures_, {});
}

// Requires the mutex.
void Progress::report(ChannelFailure failure) {
  failures_.push_back(std::move(failure));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

bool Progress::stop() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    woken_.notify_one();
    // The thread is in no call that blocks.
    ended_.wait(lock, [this] { return !running_; });
  }
  const std::lock_guard driving(driving_);  // nor is a host thread that helps
  return in_flight() == 0;
}

void Progress::run() noexcept {
  // By default the kernel lets a thread sleep for 50 microseconds longer than it asked for.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  int idle_rounds = 0;
  while (true) {
    if (!has_work() || helping_.load() > 0) {
      sleep();
      idle_rounds = 0;
    }
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        running_ = false;
        ended_.notify_all();
        return;
      }
    }
    if (helping_.load() > 0) continue;
    const auto begin = Steady::now();
    if (round() || Steady::now() - begin > longest_empty_round) {
      idle_rounds = 0;
    } else {
      rest(++idle_rounds);
    }
  }
}

void Progress::sleep() {
  std::unique_lock lock(mutex_);
  const auto due = [this] { return stopping_ || (helping_.load() == 0 && has_work()); };
  while (!due()) {
    dozing_ = helping_.load() > 0 || Steady::now() - helped_ < dozes_after_help;
    if (dozing_) {
      woken_.wait_for(lock, doze);
    } else {
      woken_.wait(lock);
    }
  }
  dozing_ = false;
}

// Returns whether anything has happened.
bool Progress::round() {
  const std::lock_guard driving(driving_);
  bool news = false;
  if (attention_) {
    std::vector<Ref<Collective>> fresh = startable();
    news = !fresh.empty();
    launch(std::move(fresh));
    abandon_failed();
  }
  return test_all() || news;
}

void Progress::help(bool (*over)(void*), void* context) noexcept {
  if (!has_work()) return;
  int nobody = 0;
  if (!helping_.compare_exchange_strong(nobody, 1)) return;  // another one completes what this one waits for
  const auto until = Steady::now() + longest_help;
  int idle_rounds = 0;
  while (!over(context) && has_work() && !stopping_ && Steady::now() < until) {
    if (!round() && ++idle_rounds % rounds_per_yield == 0) sched_yield();
  }
  const std::lock_guard lock(mutex_);
  helped_ = Steady::now();
  helping_ = 0;
  if (has_work()) woken_.notify_one();
}

std::vector<Ref<Collective>> Progress::startable() {
  std::vector<Ref<Collective>> fresh;
  std::vector<Ref<Channel>> looked_at;
  {
    const std::lock_guard lock(mutex_);
    attention_ = false;
    looked_at.swap(listed_);
    for (const Ref<Channel>& channel : looked_at) {
      channel->listed_ = false;
      while (!channel->queue_.empty() && channel->queue_.front()->reached_) {
        fresh.push_back(channel->queue_.front());
        channel->started_ones_.push_back(std::move(channel->queue_.front()));
        channel->queue_.pop_front();
        if (fresh.back()->label_.common) channel->started_.fetch_add(1, std::memory_order_relaxed);
        in_flight_.fetch_add(1, std::memory_order_release);
      }
    }
  }
  for (const Ref<Channel>& channel : looked_at) settle_closed(*channel);
  return fresh;
}

void Progress::launch(std::vector<Ref<Collective>>&& fresh) {
  const auto now = Steady::now();
  for (Ref<Collective>& collective : fresh) {
    collective->began_ = now;
    Channel& channel = *collective->channel_;
    for (Transfer& transfer : collective->transfers_) {
      std::string error = channel.transport_->start(channel.communicator_, transfer);
      if (error.empty()) continue;
      collective->reported_ = true;
      const std::lock_guard lock(mutex_);
      report({collective->channel_, collective->described(), false, std::move(error)});
      break;
    }
    tested_.push_back(std::move(collective));
  }
}

bool Progress::over(const Collective& collective) const noexcept {
  return std::all_of(collective.transfers_.begin(), collective.transfers_.end(),
                     [](const Transfer& transfer) { return transfer.over; });
}

void Progress::test(Collective& collective) {
  for (Transfer& transfer : collective.transfers_) {
    if (transfer.over || transfer.request == 0) continue;
    std::string error = collective.channel_->transport_->test(transfer);
    if (error.empty()) continue;
    transfer.request = 0;
    if (std::exchange(collective.reported_, true)) continue;
    const std::lock_guard lock(mutex_);
    report({collective.channel_, collective.described(), false, std::move(error)});
  }
}

// Reports once that the time is up; the layer above then fails the channel.
void Progress::check_time(Collective& collective, Steady::time_point now) {
  if (collective.reported_ || now - collective.began_ < collective.channel_->timeout_) return;
  collective.reported_ = true;
  const std::lock_guard lock(mutex_);
  report({collective.channel_, collective.described(), true, {}});
}

bool Progress::test_all() {
  bool news = false;
  const auto now = Steady::now();
  for (std::size_t i = 0; i < tested_.size();) {
    test(*tested_[i]);
    if (over(*tested_[i])) {
      const Ref<Collective> ended = std::move(tested_[i]);
      tested_.erase(tested_.begin() + static_cast<std::ptrdiff_t>(i));
      finish(ended);
      news = true;
    } else {
      check_time(*tested_[i++], now);
    }
  }
  return news;
}

void Progress::finish(const Ref<Collective>& collective) {
  Channel& channel = *collective->channel_;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(channel.started_ones_.begin(), channel.started_ones_.end(), collective);
    if (found != channel.started_ones_.end()) channel.started_ones_.erase(found);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  divide(collective->division_);
  collective->complete();
  settle_closed(channel);
}

// The transport cannot release their memory, so they are leaked.
void Progress::abandon_failed() {
  std::vector<std::pair<Ref<Collective>, Ref<Failure>>> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto each = tested_.begin(); each != tested_.end();) {
      const Ref<Failure> failure = (*each)->channel_->failure_;
      if (!failure) {
        ++each;
        continue;
      }
      (*each)->channel_->started_ones_.clear();
      failed.emplace_back(std::move(*each), failure);
      each = tested_.erase(each);
    }
  }
  for (auto& [collective, failure] : failed) {
    collective->complete(failure);
    collective.leak();
  }
}

void Progress::settle_closed(Channel& channel) {
  {
    const std::lock_guard lock(mutex_);
    if (!channel.closed_ || channel.failure_ || !channel.started_ones_.empty() || !channel.queue_.empty()) return;
    channel.closed_ = false;
  }
  channel.transport_->give_back(channel.communicator_);
}

void Progress::rest(int idle_rounds) {
  if (idle_rounds < busy_rounds) {
    sched_yield();
    return;
  }
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, idle_rounds < busy_rounds + short_rests ? short_rest : long_rest,
                  [this] { return attention_ || stopping_; });
}

}  // namespace anabranch
